"""The one address of the local stack: `python -m infra.local.gateway PORT`.

On AWS these are four: the function URL of chat, API Gateway before the API, Cognito, and wherever the page is
hosted. Chat runs in this process; the API's handler runs in one of its own, as it is another execution
environment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from functions.chat import app as chat
from infra.local import issuer
from infra.local.api_gateway import event_of, response_of
from infra.local.lambda_runtime import initialize, invoke
from infra.local.leash import follow
from infra.local.processes import CHECKOUT
from infra.local.serving import serve
from infra.local.state import State

CONSOLE = CHECKOUT / "infra" / "console"
CHAT_PATHS = ("/healthz", "/v1/chat")
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

Event = dict[str, Any]
logger = logging.getLogger(__name__)


class Environment:
    """A process that calls `begin`, then `function` for one event after another; made anew if it dies."""

    def __init__(self, begin: Callable[[], None], function: Callable[[Event], Any]) -> None:
        self._begin = begin
        self._function = function
        self._process = self._new()

    async def invoke(self, event: Event) -> Any:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._process, self._function, event)
        except BrokenExecutor:
            self._process = self._new()
            raise

    def close(self) -> None:
        self._process.shutdown(cancel_futures=True)

    def _new(self) -> ProcessPoolExecutor:
        process = ProcessPoolExecutor(
            1, get_context("spawn"), initializer=follow, initargs=(os.getpid(), signal.SIGTERM)
        )
        process.submit(self._begin)
        return process


def create_app(chat_app: ASGIApp, api: Callable[[Event], Awaitable[Any]], issuer_app: ASGIApp) -> ASGIApp:
    """`chat_app` answers its own paths and gets the life-cycle events; the rest is the issuer, the API and
    the console."""

    async def call_api(request: Request) -> Response:
        try:
            return response_of(await api(await event_of(request)))
        except Exception:
            # What API Gateway answers when a function fails; the reason is for the log alone.
            logger.exception("The API's handler failed")
            return JSONResponse({"message": "Internal Server Error"}, 500)

    others = Starlette(
        routes=[
            Mount("/issuer", issuer_app),
            Route("/v1/{path:path}", call_api, methods=METHODS),
            Mount("/", StaticFiles(directory=CONSOLE, html=True, check_dir=False)),
        ],
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        to_chat = scope["type"] == "lifespan" or scope["path"] in CHAT_PATHS
        await (chat_app if to_chat else others)(scope, receive, send)

    # A page of another name that resolves to this machine is not let in: the issuer gives tokens to all who
    # ask.
    return TrustedHostMiddleware(app, ["127.0.0.1", "localhost"])


def main(port: int) -> None:
    state = State(Path(os.environ["OCTOPUS_LOCAL_STATE"]))
    signer = issuer.Issuer(os.environ["OCTOPUS_JWT_ISSUER"], state.issuer_key)
    environment = Environment(partial(initialize, "api"), partial(invoke, "api"))
    asyncio.run(chat.warm_up())  # turns have a deadline, and starting has none
    try:
        serve(create_app(chat.app, environment.invoke, issuer.create_app(signer)), port)
    finally:
        environment.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
