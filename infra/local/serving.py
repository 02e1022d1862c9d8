"""Serve an ASGI application on the loopback address."""

from __future__ import annotations

import uvicorn
from starlette.types import ASGIApp

from infra.local.processes import LOOPBACK

DRAIN_SECONDS = 5  # for answers under way when the server is told to stop


def serve(app: ASGIApp, port: int) -> None:
    """Serve `app` until the process gets SIGTERM or SIGINT."""
    uvicorn.run(app, host=LOOPBACK, port=port, log_level="warning", timeout_graceful_shutdown=DRAIN_SECONDS)
