"""Recall: the past sessions of this user with this agent that bear on the message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from octopus.embedding import Embedder
from octopus.episodic.ports import EpisodeHead, EpisodeStore, TraceHit
from octopus.episodic.types import RecalledEpisode, Recollection
from octopus.memory_config import MemoryConfig
from octopus.ranking import evidence
from octopus.recall import Query, Scope, Score
from octopus.relevance import Calibration

LATEST_IN_BOTH = 2  # mode `both` always brings the last two sessions: reference system, EpisodicRecallConfig
NEAR_MISSES = 3
MATCHES = 8  # traces of an episode that are passed on; more would not fit the section's budget
# What a trace is worth that has every word of the message, two at least: names and numbers that a vector blurs.
WORDS_RELEVANCE = 0.9
# From this relevance to each other on, two facts are taken to be about the same matter. Of eleven pairs of a fact and
# its later correction eight reach it, of nine pairs that are merely related five: these bring in a harmless neighbour.
SAME_MATTER = 0.9
FACTS_FOLLOWED = 2  # of each episode, to the last that was said on their matter


class EpisodicRecall:
    """The read side of a turn."""

    def __init__(self, store: EpisodeStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Recollection:
        """Episodes by rank: the relevant ones best first, then (modes `recency` and `both`) the latest, none twice.

        An episode ranks by the best of its summary, facts and passages. It is as relevant as the most relevant of them,
        by meaning and words, and needs `episodic_min_score`. A fact is preceded by the last that a later session holds
        on the same matter: what was said often does not crowd out what was said since. Raises `Unavailable`.
        """
        mode, minimum = config.episodic_recall_mode, config.episodic_min_score
        best = [] if mode == "recency" else await self._best(scope, query, config)
        relevant = [found for found in best if _is_relevant(found.episode, minimum)][: config.episodic_top_k]
        current = await self._with_later_facts(scope, query, config, relevant)
        latest: list[RecalledEpisode] = []
        if mode != "semantic":
            limit = config.episodic_top_k if mode == "recency" else LATEST_IN_BOTH
            latest = [_recalled(head) for head in await self._store.latest_episodes(scope, limit)]
        chosen = _once([*current[: config.episodic_top_k], *latest])
        shown = {episode.episode_id for episode in chosen}
        missed = [found.episode for found in best if not _is_relevant(found.episode, minimum)]
        near = [episode for episode in missed if episode.episode_id not in shown]
        return Recollection(_ranked(chosen), _ranked(near[:NEAR_MISSES]))

    async def _best(self, scope: Scope, query: Query, config: MemoryConfig) -> list[_Found]:
        limit = config.episodic_top_k + LATEST_IN_BOTH + NEAR_MISSES
        hits = await self._store.best_traces(scope, query.text, await query.vector(), limit)
        by_episode: dict[UUID, list[TraceHit]] = {}
        for hit in hits:
            by_episode.setdefault(hit.episode.episode_id, []).append(hit)
        calibration = self._embedder.calibration
        return _with_ranks([_found(traces, calibration, config.episodic_min_score) for traces in by_episode.values()])

    async def _with_later_facts(
        self, scope: Scope, query: Query, config: MemoryConfig, relevant: Sequence[_Found]
    ) -> list[RecalledEpisode]:
        """The relevant episodes, each after those that hold later facts on its matters."""
        followed = {fact.key: fact for found in relevant for fact in found.facts[:FACTS_FOLLOWED]}
        if not followed:
            return [found.episode for found in relevant]
        calibration = self._embedder.calibration
        later = await self._store.later_facts(
            scope, await query.vector(), list(followed), calibration.cosine(SAME_MATTER)
        )
        known = {found.episode.episode_id: found.episode for found in relevant}
        newer: dict[UUID, list[RecalledEpisode]] = {}
        for fact in later:
            # On the same matter in nearly the same words, so its share is taken to be that of the fact it follows.
            worth = calibration.relevance(evidence(fact.cosine, followed[fact.of].share))
            episode = _recalled(fact.episode, Score(0, fact.cosine, worth), [fact.content])
            if _is_relevant(episode, config.episodic_min_score):
                newer.setdefault(fact.of[0], []).append(known.get(episode.episode_id, episode))
        return _once(
            episode for found in relevant for episode in (*newer.get(found.episode.episode_id, ()), found.episode)
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """An episode with those of its facts that are relevant, best first."""

    episode: RecalledEpisode
    facts: list[TraceHit]


def relevance(hit: TraceHit, calibration: Calibration) -> float:
    """Relevance in [0, 1] of one trace."""
    by_evidence = calibration.relevance(evidence(hit.cosine, hit.share))
    return max(by_evidence, WORDS_RELEVANCE) if hit.has_words else by_evidence


def _found(traces: Sequence[TraceHit], calibration: Calibration, minimum: float) -> _Found:
    relevances = [relevance(trace, calibration) for trace in traces]
    relevant = [trace for trace, worth in zip(traces, relevances, strict=True) if worth >= minimum]
    share = round(max(trace.share for trace in traces), 4)
    score = Score(0, max(trace.cosine for trace in traces), max(relevances), share)
    episode = _recalled(traces[0].episode, score, _matched(relevant[:MATCHES]))
    return _Found(episode, [trace for trace in relevant if trace.kind == "fact"])


def _with_ranks(found: list[_Found]) -> list[_Found]:
    """The same episodes with their places by cosine alone and by share alone."""
    by_cosine, by_share = _places(found, lambda score: score.cosine), _places(found, lambda score: score.share)
    return [
        replace(it, episode=replace(it.episode, score=replace(it.episode.score, cosine_rank=cosine, share_rank=share)))
        for it, cosine, share in zip(found, by_cosine, by_share, strict=True)
    ]


def _places(found: Sequence[_Found], by: Callable[[Score], float | None]) -> list[int | None]:
    """From 1, best first; None for what has nothing of it."""
    worth = [by(it.episode.score) or 0.0 for it in found]
    order = sorted(range(len(found)), key=lambda n: -worth[n])
    place = {n: rank for rank, n in enumerate(order, start=1)}
    return [place[n] if worth[n] else None for n in range(len(found))]


def _matched(traces: Iterable[TraceHit]) -> list[str]:
    """The facts; the passages where neither a fact nor the summary is among the traces."""
    by_kind: dict[str, list[str]] = {"summary": [], "fact": [], "passage": []}
    for trace in traces:
        by_kind[trace.kind].append(trace.content)
    return by_kind["fact"] or ([] if by_kind["summary"] else by_kind["passage"])


def _recalled(head: EpisodeHead, score: Score | None = None, matched: Sequence[str] = ()) -> RecalledEpisode:
    return RecalledEpisode(
        episode_id=head.episode_id,
        conversation_id=head.conversation_id,
        started_at=head.started_at,
        summary=head.summary,
        matched=list(matched),
        archived=head.archived,
        score=score or Score(0),
    )


def _is_relevant(episode: RecalledEpisode, minimum: float) -> bool:
    return episode.score.relevance is not None and episode.score.relevance >= minimum


def _once(episodes: Iterable[RecalledEpisode]) -> list[RecalledEpisode]:
    first: dict[UUID, RecalledEpisode] = {}
    for episode in episodes:
        first.setdefault(episode.episode_id, episode)
    return list(first.values())


def _ranked(episodes: Iterable[RecalledEpisode]) -> list[RecalledEpisode]:
    return [replace(e, score=replace(e.score, rank=rank)) for rank, e in enumerate(episodes, start=1)]
