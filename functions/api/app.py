"""The router that all groups of endpoints share: authentication first, problem documents for every error."""

from __future__ import annotations

import base64
import json
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.api import agents, chat, context, conversations, episodes, knowledge, privacy, procedures, tools
from octopus.cloud.telemetry import logger
from octopus.cloud.wiring import services
from octopus.errors import InvalidInput, MalformedBody, NotFound, OctopusError
from octopus.problem import CONTENT_TYPE, problem, problem_headers

GROUPS: list[APIGatewayHttpRouter] = [
    agents.router,
    chat.router,
    context.router,
    conversations.router,
    episodes.router,
    knowledge.router,
    privacy.router,
    procedures.router,
    tools.router,
]

app = APIGatewayHttpResolver(enable_validation=True)
for group in GROUPS:
    app.include_router(group, prefix="/v1")


async def resolve(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request. The caller is verified before the request is even parsed."""
    try:
        caller = await services().verifier.verify(_header(event, "authorization"))
        _refuse_malformed(event)
        await services().follow_space()
    except OctopusError as error:
        return _as_proxy_result(_problem_response(error))
    logger.append_keys(tenant_id=caller.tenant_id)
    app.append_context(caller=caller)
    return await app.resolve_async(event, context)


@app.exception_handler(OctopusError)
def _on_octopus_error(error: OctopusError) -> Response[str]:
    if error.status >= 500:
        logger.exception("request failed", exc_info=error)
    return _problem_response(error)


@app.exception_handler(RequestValidationError)
def _on_invalid_request(error: RequestValidationError) -> Response[str]:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    detail = f"{field}: {first['msg']}." if field else f"{first['msg']}."
    return _problem_response(InvalidInput(detail, field=field or None))


@app.exception_handler(RequestUnsupportedContentType)
def _on_unsupported_content_type(_: RequestUnsupportedContentType) -> Response[str]:
    return _problem_response(MalformedBody("Send the body as application/json."))


@app.exception_handler(NotFoundError)
def _on_unknown_path(_: NotFoundError) -> Response[str]:
    return _problem_response(NotFound("There is no such endpoint; check the method and the path."))


@app.exception_handler(Exception)
def _on_bug(error: Exception) -> Response[str]:
    """What nobody foresaw is ours; the log has it, and the alarm on answers of 500 and above rings."""
    logger.exception("request failed", exc_info=error)
    return _problem_response(OctopusError("The request failed for a reason that is ours; it has been logged."))


def _refuse_malformed(event: dict[str, Any]) -> None:
    """Raise `MalformedBody` for a body that Python's JSON parser cannot take."""
    if body := event.get("body"):
        try:
            json.loads(base64.b64decode(body).decode() if event.get("isBase64Encoded") else body)
        except json.JSONDecodeError as exc:
            raise MalformedBody(f"The body is not valid JSON: {exc}.") from exc
        except UnicodeDecodeError as exc:
            raise MalformedBody("The body is not valid UTF-8.") from exc
        except (ValueError, RecursionError) as exc:
            raise MalformedBody("The body holds a number that is too long, or is nested too deeply.") from exc


def _problem_response(error: OctopusError) -> Response[str]:
    return Response(
        status_code=error.status,
        content_type=CONTENT_TYPE,
        headers=dict(problem_headers(error)),
        body=json.dumps(problem(error)),
    )


def _as_proxy_result(response: Response[str]) -> dict[str, Any]:
    headers = {"Content-Type": CONTENT_TYPE, **response.headers}
    return {"statusCode": response.status_code, "headers": headers, "body": response.body}


def _header(event: dict[str, Any], name: str) -> str | None:
    """HTTP API events carry header names in lower case."""
    value: str | None = event.get("headers", {}).get(name)
    return value
