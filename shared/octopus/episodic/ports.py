"""What episodic memory needs from the outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol
from uuid import UUID

from octopus.conversations.types import EndReason, Message
from octopus.episodic.types import Episode, SummarySource
from octopus.memory_config import MemoryConfig
from octopus.paging import Place
from octopus.recall import Scope
from octopus.relevance import Vector

TokenCounter = Callable[[str], int]
TraceKind = Literal["summary", "fact", "passage"]


@dataclass(frozen=True, slots=True)
class Claim:
    """An ended session that one worker has taken to make its episode. `ended_for` is by the database's clock."""

    conversation_id: UUID
    agent_id: UUID
    user_id: str
    started_at: datetime
    ended_at: datetime
    end_reason: EndReason
    ended_for: timedelta
    config: MemoryConfig


@dataclass(frozen=True, slots=True)
class Trace:
    """Something of the episode that recall can find: its summary, a key fact or a passage of the dialogue.

    `first_seq` and `last_seq` are the messages that it comes from; `token_count` is raw. `context` is what
    `octopus.episodic.context` makes of the vector and its neighbours', `parts` are the vectors of its sentences.
    """

    kind: TraceKind
    content: str
    first_seq: int
    last_seq: int
    token_count: int
    embedding: Vector
    context: Vector
    parts: Sequence[Vector]


@dataclass(frozen=True, slots=True)
class NewEpisode:
    """An episode that is about to be written."""

    summary: str
    summary_source: SummarySource
    message_count: int
    traces: Sequence[Trace]


@dataclass(frozen=True, slots=True)
class EpisodeHead:
    """What is shown of an episode beside what matched."""

    episode_id: UUID
    conversation_id: UUID
    started_at: datetime
    summary: str
    archived: bool


@dataclass(frozen=True, slots=True)
class TraceHit:
    """A trace that a search found. `cosine` is its own; `share` (see `octopus.ranking`) of its words, its neighbours'
    and its session's; `has_words` says that it has every word of the message, two at least."""

    episode: EpisodeHead
    ordinal: int
    kind: TraceKind
    content: str
    cosine: float
    share: float
    has_words: bool

    @property
    def key(self) -> tuple[UUID, int]:
        return self.episode.episode_id, self.ordinal


@dataclass(frozen=True, slots=True)
class LaterFact:
    """A fact that a later session holds on the same matter as the fact that `of` names by episode and ordinal."""

    of: tuple[UUID, int]
    episode: EpisodeHead
    content: str
    cosine: float


class EpisodeStore(Protocol):
    """Episodes of one tenant. `user_id` None means any user's. Every method is atomic."""

    async def claim_session(
        self, tenant_id: str, conversation_id: UUID, last_seq: int, worker: str, lease_s: int
    ) -> Claim | None:
        """None when the session has its episode, another worker is making it, or it is not there (any more)."""
        ...

    async def release_session(self, tenant_id: str, conversation_id: UUID, worker: str) -> None:
        """Let another worker try at once."""
        ...

    async def session_log(self, tenant_id: str, conversation_id: UUID) -> list[Message]: ...

    async def write_episode(self, tenant_id: str, claim: Claim, worker: str, episode: NewEpisode | None) -> bool:
        """Write it and settle the session; None settles it without one. False, and nothing written, when the worker has
        lost its claim or the session has been erased."""
        ...

    async def best_traces(self, scope: Scope, text: str, vector: Vector, episodes: int) -> list[TraceHit]:
        """The best traces, best first; among them the best of each of the best `episodes` episodes. Exact."""
        ...

    async def later_facts(
        self, scope: Scope, vector: Vector, facts: Sequence[tuple[UUID, int]], least_cosine: float
    ) -> list[LaterFact]:
        """For each of `facts` the last one said on the same matter in a later session, if there is one: the two are at
        least `least_cosine` alike. `cosine` is to `vector`."""
        ...

    async def latest_episodes(self, scope: Scope, limit: int) -> list[EpisodeHead]:
        """By their end, latest first."""
        ...

    async def list_episodes(
        self, tenant_id: str, user_id: str | None, agent_id: UUID | None, before: Place | None, limit: int
    ) -> list[Episode]:
        """Latest end first."""
        ...

    async def get_episode(self, tenant_id: str, user_id: str | None, episode_id: UUID) -> Episode | None: ...

    async def delete_episode(self, tenant_id: str, user_id: str | None, episode_id: UUID) -> bool:
        """With its whole session: what was said must not stay behind."""
        ...
