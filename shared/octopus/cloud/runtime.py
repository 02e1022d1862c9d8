"""One event loop per execution environment: handlers stay synchronous at the edge, everything inside is not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to completion on this environment's loop, which outlives the call: pools and clients stay usable.

    In the caller's context, so that what is traced belongs to this invocation; a runner alone keeps its first one.
    """
    return _runner().run(coroutine, context=copy_context())
