"""What the three recalled memories have in common: whose memory is asked, with what, and how a hit is scored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from uuid import UUID

from octopus.relevance import Vector


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory: every store filters by these, for equality, and by nothing that a message says."""

    tenant_id: str
    user_id: str
    agent_id: UUID


class Query:
    """The message of a turn, embedded once and awaited by whichever memory needs the vector."""

    def __init__(self, text: str, embedding: Awaitable[Vector]) -> None:
        self.text = text
        self._embedding = asyncio.ensure_future(embedding)
        # A memory that never asks for the vector must not leave an unretrieved exception behind.
        self._embedding.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def vector(self) -> Vector:
        """The unit vector of the message. Raises `Unavailable` when the embedder failed."""
        return await asyncio.shield(self._embedding)

    def cancel(self) -> None:
        """Stop embedding; nobody asks any more."""
        self._embedding.cancel()


@dataclass(frozen=True, slots=True)
class Score:
    """How well a stored item fits the query.

    `rank` counts from 1. `cosine` in [-1, 1] is the raw score by meaning, `share` in [0, 1] that by words (an
    episode's are also those of its day), and `relevance` in [0, 1] what both are worth (`octopus.ranking`); each is
    None where the item was not found by it (recency, a pattern, a name). `cosine_rank` and `share_rank`, from 1, are
    its places among the candidates by either score alone; None where it was not found by it, and in traces of before
    these were kept.
    """

    rank: int
    cosine: float | None = None
    relevance: float | None = None
    share: float | None = None
    cosine_rank: int | None = None
    share_rank: int | None = None
