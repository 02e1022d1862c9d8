"""An ended session becomes an episode: once, whatever happens to the event that says so."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Literal

from octopus.conversations.sessions import SessionEnded
from octopus.embedding import Embedder
from octopus.episodic.context import trace_vectors
from octopus.episodic.passages import MOST_TOKENS, passages
from octopus.episodic.ports import Claim, EpisodeStore, NewEpisode, TokenCounter, Trace, TraceKind
from octopus.episodic.summarizer import Summarizer
from octopus.episodic.summary import Digest, extract
from octopus.episodic.transcript import Line, dialogue, transcript
from octopus.errors import ModelRefused, ModelUnavailable, OctopusError
from octopus.redaction import redacted

log = logging.getLogger(__name__)

Outcome = Literal["written", "nothing_to_remember", "not_claimed", "overtaken"]

# A claim outlives the longest run of the end-session function, so that a slow worker is not joined by a second.
CLAIM_S = 300
# When the model has not answered for a day, an extract is better than no episode.
PATIENCE = timedelta(days=1)


class EpisodeWriter:
    """Makes episodes of ended sessions."""

    def __init__(self, store: EpisodeStore, summarizer: Summarizer, embedder: Embedder, count: TokenCounter) -> None:
        self._store = store
        self._summarizer = summarizer
        self._embedder = embedder
        self._count = count

    async def remember(self, ended: SessionEnded, worker: str) -> Outcome:
        """Make the episode of a session that has ended.

        `worker` names this delivery of the event: a retry under the same name continues, another delivery stands back.
        Raises what the model, the embedder or the database raise; the event is then to be delivered again.
        """
        tenant, conversation = ended.tenant_id, ended.conversation_id
        claim = await self._store.claim_session(tenant, conversation, ended.last_seq, worker, CLAIM_S)
        if claim is None:
            return "not_claimed"
        try:
            episode = await self._episode(tenant, claim)
            written = await self._store.write_episode(tenant, claim, worker, episode)
        except OctopusError:
            await self._release(tenant, claim, worker)
            raise
        if not written:
            return "overtaken"
        return "written" if episode else "nothing_to_remember"

    async def _episode(self, tenant_id: str, claim: Claim) -> NewEpisode | None:
        if not claim.config.episodic_enabled:
            return None
        lines = transcript(await self._store.session_log(tenant_id, claim.conversation_id))
        if claim.config.pii_redaction:
            texts = redacted([line.text for line in lines])
            lines = [replace(line, text=text) for line, text in zip(lines, texts, strict=True)]
        said = dialogue(lines)
        if not said:
            return None
        digest = await self._digest(lines, claim)
        return NewEpisode(
            summary=digest.summary,
            summary_source=digest.source,
            message_count=len({line.seq for line in said}),
            traces=await self._traces(digest, said),
        )

    async def _digest(self, lines: Sequence[Line], claim: Claim) -> Digest:
        try:
            return await self._summarizer.digest(lines)
        except (ModelUnavailable, ModelRefused):
            if claim.ended_for < PATIENCE:
                raise
            log.warning("no model for a day; conversation %s is remembered by extract", claim.conversation_id)
            return extract(dialogue(lines), self._count)

    async def _traces(self, digest: Digest, said: Sequence[Line]) -> list[Trace]:
        limit = min(MOST_TOKENS, self._embedder.max_tokens - 2)  # less the marks around a text
        pieces: list[tuple[TraceKind, str, int, int]] = [("summary", digest.summary, said[0].seq, said[-1].seq)]
        pieces += [("fact", fact.statement, fact.first_seq, fact.last_seq) for fact in digest.facts]
        pieces += [
            ("passage", passage.text, passage.first_seq, passage.last_seq)
            for passage in passages(said, self._embedder.count_tokens, limit)
        ]
        vectors = await trace_vectors(
            self._embedder, [content for _, content, _, _ in pieces], [kind == "passage" for kind, *_ in pieces]
        )
        return [
            Trace(kind, content, first, last, self._count(content), of.embedding, of.context, of.parts)
            for (kind, content, first, last), of in zip(pieces, vectors, strict=True)
        ]

    async def _release(self, tenant_id: str, claim: Claim, worker: str) -> None:
        try:
            await self._store.release_session(tenant_id, claim.conversation_id, worker)
        except OctopusError:
            log.warning("conversation %s stays claimed until its lease ends", claim.conversation_id)
