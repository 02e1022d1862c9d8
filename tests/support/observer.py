"""An observer that remembers what it was told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from octopus.working.trace import StoreReport, TurnTrace


class RecordingObserver:
    """Implements `octopus.observer.Observer`."""

    def __init__(self) -> None:
        self.spans: list[str] = []
        self.degraded: list[StoreReport] = []
        self.traces: list[TurnTrace] = []
        self.failed: list[BaseException] = []

    @asynccontextmanager
    async def span(self, name: str) -> AsyncIterator[None]:
        self.spans.append(name)
        yield

    def store_degraded(self, report: StoreReport, error: BaseException) -> None:
        self.degraded.append(report)

    def turn_failed(self, tenant_id: str, turn_id: UUID, error: BaseException) -> None:
        self.failed.append(error)

    def turn_ended(self, tenant_id: str, trace: TurnTrace) -> None:
        self.traces.append(trace)
