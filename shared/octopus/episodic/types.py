"""Episodes, their facts, and what recall found among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from octopus.conversations.types import EndReason
from octopus.recall import Score

SummarySource = Literal["model", "extractive", "verbatim"]


@dataclass(frozen=True, slots=True)
class Episode:
    """One ended session. `summary_source` says who wrote the summary: the model, an extract, or the log itself."""

    episode_id: UUID
    conversation_id: UUID
    agent_id: UUID
    user_id: str
    summary: str
    key_facts: list[str]
    summary_source: SummarySource
    message_count: int
    started_at: datetime
    ended_at: datetime
    end_reason: EndReason
    archived_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecalledEpisode:
    """An episode that recall found, with the facts and passages of it that matched, best first."""

    episode_id: UUID
    conversation_id: UUID
    started_at: datetime
    summary: str
    matched: list[str]
    archived: bool
    score: Score


@dataclass(frozen=True, slots=True)
class Recollection:
    """Episodes in the order of their rank, and the best ones below the minimum relevance."""

    episodes: list[RecalledEpisode] = field(default_factory=list)
    near_misses: list[RecalledEpisode] = field(default_factory=list)
