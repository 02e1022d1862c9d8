"""End what nobody ended, and announce again what was ended in vain."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from octopus.conversations.sessions import Sessions
from octopus.errors import OctopusError
from octopus.memory_config import MemoryConfig

log = logging.getLogger(__name__)

BATCH = 200
# The end-session function is done within a minute, and the bus retries by itself before that.
PATIENCE_MINUTES = 10


@dataclass(frozen=True, slots=True)
class Found:
    """A session that wants ending (`last_seq` is where its log stood) or announcing."""

    tenant_id: str
    conversation_id: UUID
    last_seq: int


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did. `failed` sessions are found again by the next."""

    ended: int
    announced: int
    failed: int


class SessionFinder(Protocol):
    """Sessions across tenants."""

    async def abandoned_sessions(self, defaults: MemoryConfig, limit: int) -> list[Found]:
        """Idle or over-age by their agent's settings, or by `defaults` where the agent chose none."""
        ...

    async def unsettled_sessions(self, patience_minutes: int, limit: int) -> list[Found]:
        """Ended, without an episode, last announced that long ago, the pause doubling with each announcement."""
        ...


class SessionSweep:
    """One bounded pass over the sessions of every tenant."""

    def __init__(self, finder: SessionFinder, sessions: Sessions) -> None:
        self._finder = finder
        self._sessions = sessions

    async def run(self) -> Swept:
        """One session's failure does not keep the others waiting."""
        ended = announced = failed = 0
        for found in await self._finder.abandoned_sessions(MemoryConfig(), BATCH):
            try:
                session = await self._sessions.end_abandoned(found.tenant_id, found.conversation_id, found.last_seq)
                ended += session is not None
            except OctopusError:
                log.exception("conversation %s could not be ended", found.conversation_id)
                failed += 1
        for found in await self._finder.unsettled_sessions(PATIENCE_MINUTES, BATCH):
            try:
                announced += await self._sessions.announce_again(found.tenant_id, found.conversation_id)
            except OctopusError:
                log.exception("conversation %s could not be announced", found.conversation_id)
                failed += 1
        return Swept(ended, announced, failed)
