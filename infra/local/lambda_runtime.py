"""Call the handler of a function as Lambda does: an event, a context, one call at a time per process."""

from __future__ import annotations

import atexit
import os
import time
import uuid
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from infra.local.environment import ACCOUNT, REGION

TIMEOUT_SECONDS = 30


def _request_id() -> str:
    return str(uuid.uuid4())


@dataclass
class LambdaContext:
    """The context of one call, with the members of the Python runtime's own."""

    function_name: str
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 1024
    aws_request_id: str = field(default_factory=_request_id)
    log_stream_name: str = "local"
    identity: None = None
    client_context: None = None
    _deadline: float = field(default_factory=lambda: time.monotonic() + TIMEOUT_SECONDS)

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.function_name}"

    @property
    def log_group_name(self) -> str:
        return f"/aws/lambda/{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def initialize(function: str) -> None:
    """Import the function, as Lambda does before the first call. The process will end as on Lambda, too: at
    once, with the functions' event loop and pools."""
    import_module(f"functions.{function}.handler")
    atexit.register(os._exit, 0)


def invoke(function: str, event: dict[str, Any]) -> Any:
    """What the handler in `functions/<function>/handler.py` returns for `event`; raises what it raises."""
    handler = import_module(f"functions.{function}.handler").handler
    return handler(event, LambdaContext(f"octopus-{function.replace('_', '-')}"))
