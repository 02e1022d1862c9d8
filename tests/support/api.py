"""Requests to the API function as API Gateway makes them."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlencode

from functions.api.handler import handler
from infra.local.lambda_runtime import LambdaContext
from octopus.identity import Principal, Role


class AnyToken:
    """Takes the Authorization header for `tenant/user/role…`."""

    async def verify(self, authorization: str | None) -> Principal:
        tenant, user, *roles = str(authorization).split("/")
        return Principal(tenant, user, frozenset(Role(role) for role in roles))


def request(
    method: str, path: str, *, token: str, query: dict[str, str] | None = None, body: Any = None
) -> dict[str, Any]:
    """The handler's answer: statusCode, headers and body. A body of bytes is sent as it is, another one as JSON."""
    sent = base64.b64encode(body).decode() if isinstance(body, bytes) else None if body is None else json.dumps(body)
    event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}),
        "queryStringParameters": query or {},
        "headers": {"authorization": token, "content-type": "application/json"},
        "requestContext": {"http": {"method": method, "path": path}, "requestId": "r", "stage": "$default"},
        "body": sent,
        "isBase64Encoded": isinstance(body, bytes),
    }
    answer: dict[str, Any] = handler(event, LambdaContext("api"))
    return answer


def call(
    method: str, path: str, *, token: str, query: dict[str, str] | None = None, body: Any = None
) -> tuple[int, Any]:
    """Status and decoded body."""
    answer = request(method, path, token=token, query=query, body=body)
    return answer["statusCode"], json.loads(answer["body"]) if answer.get("body") else None
