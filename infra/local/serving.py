"""Serve an ASGI application on the loopback address."""

from __future__ import annotations

import signal

import uvicorn
from starlette.types import ASGIApp

from infra.local.processes import LOOPBACK

DRAIN_SECONDS = 5  # for answers under way when the server is told to stop


def serve(app: ASGIApp, port: int) -> None:
    """Serve `app` until the process gets SIGTERM or SIGINT, and return."""
    # When done, uvicorn raises the signal that stopped it once more, and takes back only a KeyboardInterrupt.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    uvicorn.run(app, host=LOOPBACK, port=port, log_level="warning", timeout_graceful_shutdown=DRAIN_SECONDS)
