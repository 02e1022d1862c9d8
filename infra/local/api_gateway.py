"""API Gateway's HTTP API, payload format 2.0: a request becomes an event, and a function's result a response.

Source: the developer guide, "Create AWS Lambda proxy integrations for HTTP APIs". Not in the guide but so on
AWS: the paths in the event are decoded, `rawPath` too.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from infra.local.environment import ACCOUNT

TEXT_TYPES = ("text/", "application/json", "application/problem+json", "application/xml", "application/javascript")


async def event_of(request: Request) -> dict[str, Any]:
    """The event for a request. Headers and parameters that repeat are joined by commas; cookies are a
    list."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for name, value in request.headers.items():
        if name == "cookie":
            cookies += [cookie.strip() for cookie in value.split(";")]
        else:
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    query: dict[str, str] = {}
    for name, value in parse_qsl(request.url.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": request.scope["path"],
        "rawQueryString": request.url.query,
        "headers": headers,
        "requestContext": _context(request),
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = cookies
    if query:
        event["queryStringParameters"] = query
    if body := await request.body():
        event["body"], event["isBase64Encoded"] = _encoded(body, headers.get("content-type", ""))
    return event


def response_of(result: Any) -> Response:
    """The response for what the function returned; a result without a status is itself the JSON body."""
    if not isinstance(result, dict) or "statusCode" not in result:
        return Response(json.dumps(result), media_type="application/json")
    body = result.get("body") or ""
    content = base64.b64decode(body) if result.get("isBase64Encoded") else body
    response = Response(content, result["statusCode"], headers=result.get("headers"))
    for cookie in result.get("cookies") or []:
        response.headers.append("set-cookie", cookie)
    return response


def _context(request: Request) -> dict[str, Any]:
    now = datetime.now(UTC)
    host = request.url.hostname or ""
    return {
        "accountId": ACCOUNT,
        "apiId": "local",
        "domainName": host,
        "domainPrefix": host.partition(".")[0],
        "http": {
            "method": request.method,
            "path": request.scope["path"],
            "protocol": f"HTTP/{request.scope['http_version']}",
            "sourceIp": request.client.host if request.client else "",
            "userAgent": request.headers.get("user-agent", ""),
        },
        "requestId": str(uuid.uuid4()),
        "routeKey": "$default",
        "stage": "$default",
        "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "timeEpoch": int(time.time() * 1000),
    }


def _encoded(body: bytes, content_type: str) -> tuple[str, bool]:
    """The body as the event carries it, and whether that is base64."""
    if content_type.startswith(TEXT_TYPES):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True
