"""Where the X-Ray SDK keeps the open segments: one branch per asyncio task.

The SDK's own context for Lambda has one stack per thread, on which concurrent subsegments become each other's
children. Its context for asyncio gives each task a stack, but knows no Lambda and replaces the loop's task factory.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from aws_xray_sdk.core.lambda_launcher import LambdaContext

_kept: ContextVar[Mapping[str, Any]] = ContextVar("octopus_trace", default=MappingProxyType({}))


class TaskContext(LambdaContext):  # type: ignore[misc]
    """The SDK's context for Lambda, kept in a context variable: a task starts on its parent's branch."""

    def __init__(self) -> None:
        self._local = _TaskLocal()

    def put_subsegment(self, subsegment: Any) -> None:
        self._branch_off()
        super().put_subsegment(subsegment)

    def end_subsegment(self, end_time: float | None = None) -> bool:
        self._branch_off()
        ended: bool = super().end_subsegment(end_time)
        return ended

    def clear_trace_entities(self) -> None:
        _kept.set(MappingProxyType({}))

    def _branch_off(self) -> None:
        """Change a stack of this task's own; the present one may be that of the parent or of a sibling."""
        self._local.entities = [*getattr(self._local, "entities", ())]


class _TaskLocal:
    """What `threading.local` is to threads."""

    def __getattr__(self, name: str) -> Any:
        try:
            return _kept.get()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        _kept.set({**_kept.get(), name: value})
