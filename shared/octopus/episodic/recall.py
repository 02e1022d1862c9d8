"""Recall: the past sessions of this user with this agent that bear on the message."""

from __future__ import annotations

from collections.abc import Iterable

from octopus.embedding import Embedder
from octopus.episodic.ports import EpisodeStore, Hit
from octopus.episodic.types import RecalledEpisode, Recollection
from octopus.memory_config import MemoryConfig
from octopus.recall import Query, Scope, Score
from octopus.relevance import Calibration

LATEST_IN_BOTH = 2  # mode `both` always brings the last two sessions: reference system, EpisodicRecallConfig
NEAR_MISSES = 3
# What a trace is worth that has every word of the message, two at least: names and numbers that a vector blurs.
WORDS_RELEVANCE = 0.9


class EpisodicRecall:
    """The read side of a turn."""

    def __init__(self, store: EpisodeStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Recollection:
        """Episodes by rank: the relevant ones best first, then (modes `recency` and `both`) the latest, none twice.

        An episode is as relevant as the best of its summary, facts and passages, by vector or by words, and needs
        `episodic_min_score`. Raises `Unavailable`.
        """
        mode = config.episodic_recall_mode
        best = [] if mode == "recency" else await self._best(scope, query, config)
        relevant = [hit for hit in best if hit.relevant][: config.episodic_top_k]
        latest = []
        if mode != "semantic":
            limit = config.episodic_top_k if mode == "recency" else LATEST_IN_BOTH
            latest = await self._store.latest_episodes(scope, limit)
        chosen = {hit.episode_id: hit for hit in (*latest, *relevant)}
        near = [hit for hit in best if not hit.relevant and hit.episode_id not in chosen][:NEAR_MISSES]
        in_order = dict.fromkeys(hit.episode_id for hit in (*relevant, *latest))
        return Recollection(
            _ranked((chosen[key] for key in in_order), self._embedder.calibration),
            _ranked(near, self._embedder.calibration),
        )

    async def _best(self, scope: Scope, query: Query, config: MemoryConfig) -> list[Hit]:
        calibration = self._embedder.calibration
        return await self._store.best_episodes(
            scope,
            query.text,
            await query.vector(),
            words_cosine=calibration.cosine(WORDS_RELEVANCE),
            least_cosine=calibration.cosine(config.episodic_min_score),
            limit=config.episodic_top_k + LATEST_IN_BOTH + NEAR_MISSES,
        )


def _ranked(hits: Iterable[Hit], calibration: Calibration) -> list[RecalledEpisode]:
    return [
        RecalledEpisode(
            episode_id=hit.episode_id,
            conversation_id=hit.conversation_id,
            started_at=hit.started_at,
            summary=hit.summary,
            matched=hit.matched,
            archived=hit.archived,
            score=Score(rank, hit.cosine, _relevance(hit, calibration)),
        )
        for rank, hit in enumerate(hits, start=1)
    ]


def _relevance(hit: Hit, calibration: Calibration) -> float | None:
    if hit.cosine is None:
        return None
    return max(calibration.relevance(hit.cosine), WORDS_RELEVANCE if hit.has_words else 0.0)
