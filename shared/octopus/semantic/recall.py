"""Recall of knowledge: the chunks of the agent's documents that fit the message."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from octopus.memory_config import MemoryConfig
from octopus.recall import Query, Scope, Score
from octopus.relevance import Calibration
from octopus.semantic.ports import KnowledgeStore
from octopus.semantic.types import Hit, Knowledge, RecalledChunk

_NEAR_MISSES = 3


class KnowledgeRecall:
    """The read side of semantic memory."""

    def __init__(self, store: KnowledgeStore, calibration: Calibration) -> None:
        self._store = store
        self._calibration = calibration

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Knowledge:
        """At most `semantic_top_k` chunks of relevance `semantic_min_score` or better; nothing when disabled."""
        if not config.semantic_enabled:
            return Knowledge()
        return await self.search(
            scope.tenant_id, [scope.agent_id], query, config.semantic_top_k, config.semantic_min_score
        )

    async def search(
        self, tenant_id: str, agent_ids: Sequence[UUID], query: Query, top_k: int, min_score: float
    ) -> Knowledge:
        """The same among the documents of any agents of a tenant."""
        hits = await self._store.search(tenant_id, agent_ids, await query.vector(), top_k + _NEAR_MISSES)
        bound = self._calibration.cosine(min_score)
        chunks = [self._recalled(rank, hit) for rank, hit in enumerate(hits, 1)]
        found = sum(hit.cosine >= bound for hit in hits[:top_k])
        return Knowledge(chunks[:found], chunks[found : found + _NEAR_MISSES])

    def _recalled(self, rank: int, hit: Hit) -> RecalledChunk:
        return RecalledChunk(
            document_id=hit.document_id,
            ordinal=hit.ordinal,
            file_name=hit.file_name,
            heading=hit.heading,
            page=hit.page,
            content=hit.content,
            token_count=hit.token_count,
            score=Score(rank, hit.cosine, self._calibration.relevance(hit.cosine)),
        )
