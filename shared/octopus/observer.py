"""The port through which a turn is seen from outside: spans, counters, one line per turn. Never content."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from uuid import UUID

from octopus.working.trace import StoreReport, TurnTrace


class Observer(Protocol):
    """Telemetry of a turn."""

    def span(self, name: str) -> AbstractAsyncContextManager[Any]:
        """A timed part of the turn, as a subsegment of the current trace."""
        ...

    def store_degraded(self, report: StoreReport, error: BaseException) -> None:
        """A memory failed or was late."""
        ...

    def turn_failed(self, tenant_id: str, turn_id: UUID, error: BaseException) -> None:
        """A turn met an error that nobody foresaw; what was said is kept all the same."""
        ...

    def turn_ended(self, tenant_id: str, trace: TurnTrace) -> None:
        """A turn is over, well or not."""
        ...
