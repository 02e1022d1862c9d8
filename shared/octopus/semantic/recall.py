"""Recall of knowledge: the chunks of the agent's documents that fit the message."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from octopus.memory_config import MemoryConfig
from octopus.ranking import evidence
from octopus.recall import Query, Scope, Score
from octopus.relevance import Calibration
from octopus.semantic.ports import KnowledgeSearch
from octopus.semantic.types import Hit, Knowledge, RecalledChunk, SearchMode

_NEAR_MISSES = 3


class KnowledgeRecall:
    """The read side of semantic memory."""

    def __init__(self, index: KnowledgeSearch, calibration: Calibration) -> None:
        self._index = index
        self._calibration = calibration

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Knowledge:
        """At most `semantic_top_k` chunks of relevance `semantic_min_score` or better; nothing when disabled."""
        if not config.semantic_enabled:
            return Knowledge()
        return await self.search(
            scope.tenant_id,
            [scope.agent_id, *map(UUID, config.semantic_shared_agents)],
            query,
            config.semantic_top_k,
            config.semantic_min_score,
            config.semantic_search,
        )

    async def search(
        self,
        tenant_id: str,
        agent_ids: Sequence[UUID],
        query: Query,
        top_k: int,
        min_score: float,
        mode: SearchMode = "hybrid",
    ) -> Knowledge:
        """The same among the documents of any agents of a tenant."""
        vector = await query.vector()
        hits = await self._index.search(tenant_id, agent_ids, query.text, vector, mode, top_k + _NEAR_MISSES)
        ranked = [self._recalled(rank, hit) for rank, hit in enumerate(hits, 1)]
        relevant = [chunk for chunk in ranked if _relevance(chunk) >= min_score]
        others = [chunk for chunk in ranked if _relevance(chunk) < min_score]
        return Knowledge(relevant[:top_k], others[:_NEAR_MISSES])

    def _recalled(self, rank: int, hit: Hit) -> RecalledChunk:
        return RecalledChunk(
            document_id=hit.document_id,
            ordinal=hit.ordinal,
            file_name=hit.file_name,
            heading=hit.heading,
            page=hit.page,
            content=hit.content,
            token_count=hit.token_count,
            score=Score(
                rank,
                hit.cosine,
                self._calibration.relevance(evidence(hit.cosine, hit.share)),
                round(hit.share, 4),
                hit.cosine_rank,
                hit.share_rank,
            ),
        )


def _relevance(chunk: RecalledChunk) -> float:
    return chunk.score.relevance or 0.0
