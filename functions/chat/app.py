"""POST /v1/chat: a turn as a stream of server-sent events, or as one JSON document to a client that asks for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

import pydantic_core
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from functions.chat.lambda_context import LambdaContextMiddleware
from functions.chat.request import turn_request
from octopus.cloud.telemetry import logger
from octopus.cloud.tokens import count_tokens
from octopus.cloud.wiring import services
from octopus.errors import BodyTooLarge, NotFound, OctopusError
from octopus.identity import Principal
from octopus.problem import CONTENT_TYPE, problem, problem_headers
from octopus.turn_events import TurnError, TurnEvent, Waiting, collected
from octopus.turn_types import TurnRequest

KEEP_ALIVE_S = 10
PATIENCE_S = 3.0  # a turn begins in a tenth of a second; the read phase gives up after two


async def chat(request: Request) -> Response:
    """Everything that can go wrong before the user's message is durable is an HTTP status; after it, an event.

    A turn that has not begun after a moment waits for something to wake up, a database that was scaled to zero as a
    rule: the stream then opens and says so, and whatever goes wrong is an event.
    """
    caller = await services().verifier.verify(request.headers.get("authorization"))
    asked = turn_request(await _body(request))
    beginning = asyncio.ensure_future(_begin(caller, asked))
    if request.headers.get("accept", "").startswith("application/json"):
        return Response(_json(await collected(await beginning)), media_type="application/json")
    await asyncio.wait({beginning}, timeout=PATIENCE_S)
    events = await beginning if beginning.done() else _awaited(beginning)
    return EventSourceResponse(_sent(events), ping=KEEP_ALIVE_S, headers={"Cache-Control": "no-store"})


async def _begin(caller: Principal, asked: TurnRequest) -> AsyncIterator[TurnEvent]:
    await services().follow_space()
    return await services().turns.begin(caller, asked)


async def healthz(_: Request) -> Response:
    """Ready as soon as it is imported; what it depends on is connected on first use."""
    return PlainTextResponse("ok")


async def warm_up() -> None:
    """Load what the first turn would otherwise wait for: the provider's SDK, the ranks, the embedder."""
    await asyncio.gather(
        asyncio.to_thread(import_module, "anthropic"),
        asyncio.to_thread(count_tokens, ""),
        services().embedder.embed(["warm-up"]),
    )


@asynccontextmanager
async def _lifespan(_: Starlette) -> AsyncIterator[None]:
    """Warm up beside the first request, which waits only for what it needs."""
    warming = asyncio.create_task(warm_up())
    warming.add_done_callback(_say_if_failed)
    yield
    warming.cancel()


def _say_if_failed(warming: asyncio.Task[None]) -> None:
    if not warming.cancelled() and (error := warming.exception()):
        logger.warning("warm-up failed; the first turn will say why", exc_info=error)


async def _awaited(beginning: asyncio.Future[AsyncIterator[TurnEvent]]) -> AsyncIterator[TurnEvent]:
    """Say that the turn is waiting, then its events, or why there are none."""
    yield Waiting("The turn has not begun yet: a database that was asleep takes up to a minute to wake up.")
    try:
        events = await beginning
    except OctopusError as error:
        yield TurnError(error)
        return
    async for event in events:
        yield event


async def _sent(events: AsyncIterator[TurnEvent]) -> AsyncIterator[ServerSentEvent]:
    async for event in events:
        yield ServerSentEvent(_json(event.data()).decode(), event=event.name)


async def _body(request: Request) -> bytes:
    limit = services().settings.body_max_bytes
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise BodyTooLarge(f"The body has more than {limit} bytes; shorten the message.")
    return bytes(body)


def _json(value: object) -> bytes:
    return pydantic_core.to_json(value)


async def _on_octopus_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, OctopusError)
    if error.status >= 500:
        logger.exception("turn not begun", exc_info=error)
    return JSONResponse(problem(error), error.status, dict(problem_headers(error)), CONTENT_TYPE)


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Starlette's own: no such path or method."""
    assert isinstance(error, HTTPException)
    missing = NotFound("There is no such endpoint; chat is POST /v1/chat.")
    document = {**problem(missing), "status": error.status_code}
    return JSONResponse(document, error.status_code, error.headers, CONTENT_TYPE)


async def _on_bug(_: Request, error: Exception) -> Response:
    """What nobody foresaw is ours; Starlette raises it again after this, and the log has it."""
    ours = OctopusError("The turn failed for a reason that is ours; it has been logged.")
    return JSONResponse(problem(ours), ours.status, None, CONTENT_TYPE)


async def _on_gone(_: Request, __: Exception) -> Response:
    """The client went away while it was still sending."""
    return Response(status_code=400)


app = Starlette(
    routes=[Route("/v1/chat", chat, methods=["POST"]), Route("/healthz", healthz)],
    middleware=[Middleware(LambdaContextMiddleware)],
    lifespan=_lifespan,
    exception_handlers={
        OctopusError: _on_octopus_error,
        HTTPException: _on_http_error,
        ClientDisconnect: _on_gone,
        Exception: _on_bug,
    },
)
