"""Retention: messages and passages go after `episodic_retention_days`, the episode after `episodic_archive_days`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from octopus.errors import OctopusError
from octopus.memory_config import MemoryConfig

log = logging.getLogger(__name__)

BATCH = 200  # sessions per sweep and step; one short transaction each, so that no lock is held for long


@dataclass(frozen=True, slots=True)
class Due:
    """A session whose messages, or whose episode, have had their time."""

    tenant_id: str
    conversation_id: UUID


@dataclass(frozen=True, slots=True)
class Retired:
    """What one pass did. `unretired` sessions failed and are found again by the next."""

    archived: int
    expired: int
    unretired: int


class RetentionFinder(Protocol):
    """Sessions across tenants, oldest first; `defaults` hold where the agent chose nothing."""

    async def sessions_to_archive(self, defaults: MemoryConfig, limit: int) -> list[Due]: ...

    async def sessions_to_expire(self, defaults: MemoryConfig, limit: int) -> list[Due]: ...


class RetentionStore(Protocol):
    """What retention removes, session by session. Every method is atomic."""

    async def archive_session(self, tenant_id: str, conversation_id: UUID) -> bool:
        """Remove turns, messages, feedback, quotations, the running summary and passages; summary and facts stay."""
        ...

    async def expire_session(self, tenant_id: str, conversation_id: UUID) -> bool:
        """Remove the episode, and the session itself if its messages are gone."""
        ...


class Retention:
    """One bounded pass over the sessions of every tenant."""

    def __init__(self, finder: RetentionFinder, store: RetentionStore) -> None:
        self._finder = finder
        self._store = store

    async def run(self) -> Retired:
        """One session's failure does not keep the others waiting."""
        defaults = MemoryConfig()
        archived, failed = await self._each(
            await self._finder.sessions_to_archive(defaults, BATCH), self._store.archive_session
        )
        expired, failed_too = await self._each(
            await self._finder.sessions_to_expire(defaults, BATCH), self._store.expire_session
        )
        return Retired(archived, expired, failed + failed_too)

    async def _each(self, found: list[Due], retire: Callable[[str, UUID], Awaitable[bool]]) -> tuple[int, int]:
        done = failed = 0
        for due in found:
            try:
                done += await retire(due.tenant_id, due.conversation_id)
            except OctopusError:
                log.exception("conversation %s could not be retired", due.conversation_id)
                failed += 1
        return done, failed
