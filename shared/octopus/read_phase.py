"""The read phase: three memories asked at once, each with its own deadline.

A memory that fails or is late contributes nothing, and says so; the turn goes on. If every enabled memory failed the
turn stops before it has said a word.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from octopus.episodic.types import Recollection
from octopus.errors import MemoryUnavailable, OctopusError
from octopus.memory_config import MemoryConfig
from octopus.observer import Observer
from octopus.procedural.types import Guidance
from octopus.recall import Query, Scope
from octopus.semantic.types import Knowledge
from octopus.working.trace import StoreName, StoreReport

T = TypeVar("T", covariant=True)
R = TypeVar("R")


class Recall(Protocol[T]):
    """The read side of one memory."""

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> T: ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the read phase brought."""

    guidance: Guidance
    knowledge: Knowledge
    recollection: Recollection
    reports: list[StoreReport]


class ReadPhase:
    """Asks procedural, semantic and episodic memory concurrently."""

    def __init__(
        self,
        procedural: Recall[Guidance],
        semantic: Recall[Knowledge],
        episodic: Recall[Recollection],
        *,
        deadline_s: float,
        observer: Observer,
    ) -> None:
        self._procedural = procedural
        self._semantic = semantic
        self._episodic = episodic
        self._deadline_s = deadline_s
        self._observer = observer

    async def read(self, scope: Scope, query: Query, config: MemoryConfig) -> Recalled:
        """Raises `MemoryUnavailable` when every enabled memory failed or was late."""
        guidance, knowledge, recollection = await asyncio.gather(
            self._ask("procedural", config.procedural_enabled, self._procedural, Guidance(), scope, query, config),
            self._ask("semantic", config.semantic_enabled, self._semantic, Knowledge(), scope, query, config),
            self._ask("episodic", config.episodic_enabled, self._episodic, Recollection(), scope, query, config),
        )
        reports = [
            guidance.report(int(guidance.found.match is not None)),
            knowledge.report(len(knowledge.found.chunks)),
            recollection.report(len(recollection.found.episodes)),
        ]
        asked = [report for report in reports if report.enabled]
        if asked and all(report.degraded for report in asked):
            raise MemoryUnavailable(retry_after=2)
        return Recalled(guidance.found, knowledge.found, recollection.found, reports)

    async def _ask(
        self,
        name: StoreName,
        enabled: bool,
        memory: Recall[R],
        nothing: R,
        scope: Scope,
        query: Query,
        config: MemoryConfig,
    ) -> _Answer[R]:
        if not enabled:
            return _Answer(name, False, nothing)
        started = time.perf_counter()
        failure: BaseException | None = None
        degraded: Literal["failed", "late"] | None = None
        found = nothing
        try:
            async with asyncio.timeout(self._deadline_s), self._observer.span(name):
                found = await memory.recall(scope, query, config)
        except TimeoutError as exc:
            failure, degraded = exc, "late"
        except OctopusError as exc:
            failure, degraded = exc, "failed"
        answer = _Answer(name, True, found, (time.perf_counter() - started) * 1000, degraded)
        if failure:
            self._observer.store_degraded(answer.report(0), failure)
        return answer


@dataclass(frozen=True, slots=True)
class _Answer(Generic[R]):
    name: StoreName
    enabled: bool
    found: R
    ms: float = 0.0
    degraded: Literal["failed", "late"] | None = None

    def report(self, count: int) -> StoreReport:
        return StoreReport(self.name, self.enabled, round(self.ms, 3), count, self.degraded)
