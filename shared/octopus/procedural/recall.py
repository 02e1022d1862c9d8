"""The read side of a turn: at most one procedure to follow."""

from __future__ import annotations

import asyncio
from uuid import UUID

from octopus.embedding import Embedder
from octopus.memory_config import MemoryConfig
from octopus.procedural.match import TriggerSet
from octopus.procedural.ports import ProcedureStore
from octopus.procedural.types import Guidance, Procedure, ProcedureMatch
from octopus.recall import Query, Scope, Score

NEAR_MISSES = 3

# Triggers kept in an execution environment, over all agents: 1 kB each, and 6 kB more once it has been run.
MAX_TRIGGERS = 20_000


class ProcedureRecall:
    """Matches by name, then by trigger, then by similarity. Triggers stay compiled until a procedure changes."""

    def __init__(self, store: ProcedureStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._compiled: dict[tuple[str, UUID], tuple[str, TriggerSet]] = {}
        self._refreshing: set[asyncio.Task[TriggerSet]] = set()

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Guidance:
        """One query while nothing has changed; a second one, with the vector, only if no trigger matches."""
        refreshing = asyncio.create_task(self._triggers(scope))
        self._refreshing.add(refreshing)
        refreshing.add_done_callback(self._refreshed)
        # A turn whose deadline comes first goes on without; the next one finds the triggers compiled.
        triggers = await asyncio.shield(refreshing)
        match = triggers.decide(query.text)
        if match is not None:
            return Guidance(match)
        if not len(triggers) or not config.procedural_embedding_match:
            return Guidance()
        return await self._nearest(scope, query, config)

    async def _triggers(self, scope: Scope) -> TriggerSet:
        key = scope.tenant_id, scope.agent_id
        known, triggers = self._compiled.get(key, (None, TriggerSet(())))
        stamp, procedures = await self._store.load_procedures(*key, known)
        if procedures is not None:
            triggers = await asyncio.to_thread(TriggerSet, procedures)
        self._compiled.pop(key, None)  # and put back, so that the least recently used is first
        self._compiled[key] = stamp, triggers
        while len(self._compiled) > 1 and sum(len(s) for _, s in self._compiled.values()) > MAX_TRIGGERS:
            del self._compiled[next(iter(self._compiled))]
        return triggers

    def _refreshed(self, task: asyncio.Task[TriggerSet]) -> None:
        self._refreshing.discard(task)
        if not task.cancelled():
            task.exception()  # seen by whoever still waits; nobody need be left

    async def _nearest(self, scope: Scope, query: Query, config: MemoryConfig) -> Guidance:
        found = await self._store.nearest_procedures(
            scope.tenant_id, scope.agent_id, await query.vector(), limit=1 + NEAR_MISSES
        )
        matches = [self._match(rank, *hit) for rank, hit in enumerate(found, start=1)]
        bound = self._embedder.calibration.cosine(config.procedural_min_score)
        if found and found[0][1] >= bound:
            return Guidance(matches[0])
        return Guidance(None, matches[:NEAR_MISSES])

    def _match(self, rank: int, procedure: Procedure, cosine: float) -> ProcedureMatch:
        relevance = self._embedder.calibration.relevance(cosine)
        return ProcedureMatch(procedure, "embedding", Score(rank, cosine, relevance, cosine_rank=rank))
