"""The Messages API over HTTP: `POST /v1/messages` and `POST /v1/messages/count_tokens`.

For tests, `POST /offline/fail` with `{"status": 529, "times": 2}` makes the next two calls fail with that
status before any token; with `"after_tokens": 3` they stream three tokens and then report the error in the
stream, as the API does when it is overloaded half way; with `"status": null` as well, the connection breaks
there.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from infra.local.offline_model.answer import answer
from infra.local.offline_model.message import Message
from infra.local.offline_model.prompt_cache import PromptCache
from infra.local.offline_model.request import InvalidRequest, Json, check

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


ASKED_FOR = "A test has asked for this failure."


class ConnectionCut(Exception):
    """A test has asked for the connection to break here."""


@dataclass(slots=True)
class Failure:
    status: int | None
    after_tokens: int | None


def create_app(*, delay_ms: float = 0) -> Starlette:
    """The server, with its own prompt cache and failures. `delay_ms` passes before each token of a stream."""
    server = _Server(delay_ms / 1000)
    return Starlette(
        routes=[
            Route("/v1/messages", server.messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", server.count_tokens, methods=["POST"]),
            Route("/offline/fail", server.fail, methods=["POST"]),
            Route("/healthz", lambda _: Response("ok")),
        ]
    )


class _Server:
    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._cache = PromptCache()
        self._failures: deque[Failure] = deque()

    async def fail(self, request: Request) -> Response:
        order = await request.json()
        failure = Failure(order.get("status"), order.get("after_tokens"))
        self._failures.extend([failure] * order.get("times", 1))
        return Response(status_code=204)

    async def count_tokens(self, request: Request) -> Response:
        try:
            body = await _valid(request, generates=False)
        except InvalidRequest as error:
            return _error(400, str(error))
        usage = PromptCache().account(body)
        return JSONResponse({"input_tokens": usage.uncached + usage.written + usage.read})

    async def messages(self, request: Request) -> Response:
        if not (request.headers.get("x-api-key") or request.headers.get("authorization")):
            return _error(401, "x-api-key header is required")
        try:
            body = await _valid(request)
        except InvalidRequest as error:
            return _error(400, str(error))
        failure = self._failures.popleft() if self._failures else None
        if failure and (failure.after_tokens is None or not body.get("stream")):
            return _error(failure.status or 500, ASKED_FOR)
        message = Message(answer(body), body["model"], body["max_tokens"], self._cache.account(body))
        if not body.get("stream"):
            return JSONResponse(message.whole())
        return StreamingResponse(self._stream(message, failure), media_type="text/event-stream")

    async def _stream(self, message: Message, failure: Failure | None) -> AsyncIterator[str]:
        streamed = 0
        for event in message.events():
            if failure and (streamed == failure.after_tokens or event["type"] == "message_delta"):
                if failure.status is None:
                    raise ConnectionCut
                yield _sse({"type": "error", "error": _problem(failure.status, ASKED_FOR)})
                return
            if event["type"] == "content_block_delta":
                await asyncio.sleep(self._delay)
                streamed += 1
            yield _sse(event)


async def _valid(request: Request, *, generates: bool = True) -> Json:
    try:
        body: Json = await request.json()
    except ValueError as error:
        raise InvalidRequest("The request body is not valid JSON") from error
    check(body, generates=generates)
    return body


def _error(status: int, text: str) -> Response:
    return JSONResponse({"type": "error", "error": _problem(status, text)}, status)


def _problem(status: int, text: str) -> Json:
    return {"type": ERROR_TYPES.get(status, "api_error"), "message": text}


def _sse(event: Json) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
