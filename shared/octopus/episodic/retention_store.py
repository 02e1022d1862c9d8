"""Retention in PostgreSQL: finding under the sweep's role, removing under the application's."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from octopus.cloud.database import Database
from octopus.cloud.queries import load_queries
from octopus.episodic.retention import Due
from octopus.memory_config import MemoryConfig

_SQL = load_queries(__package__, "retention.sql")
_NO_TENANT = ""  # the policies of the role octopus_sweep reach across tenants


class PostgresRetentionFinder:
    """Implements `octopus.episodic.retention.RetentionFinder` under the role octopus_sweep."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sessions_to_archive(self, defaults: MemoryConfig, limit: int) -> list[Due]:
        return await self._due(_SQL["sessions_to_archive"], defaults.episodic_retention_days, limit)

    async def sessions_to_expire(self, defaults: MemoryConfig, limit: int) -> list[Due]:
        return await self._due(_SQL["sessions_to_expire"], defaults.episodic_archive_days, limit)

    async def _due(self, query: LiteralString, days: int, limit: int) -> list[Due]:
        rows = await self._database.all(_NO_TENANT, query, {"days": days, "limit": limit})
        return [Due(**row) for row in rows]


class PostgresRetentionStore:
    """Implements `octopus.episodic.retention.RetentionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def archive_session(self, tenant_id: str, conversation_id: UUID) -> bool:
        steps = ("delete_turns", "forget_quotes", "archive_episode", "delete_passages", "index_summary", "delete_husk")
        return await self._retire(tenant_id, conversation_id, "mark_archived", steps)

    async def expire_session(self, tenant_id: str, conversation_id: UUID) -> bool:
        return await self._retire(tenant_id, conversation_id, "mark_expired", ("delete_episode_of", "delete_husk"))

    async def _retire(self, tenant_id: str, conversation_id: UUID, mark: str, steps: tuple[str, ...]) -> bool:
        session = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        async with self._database.transaction(tenant_id) as tx:
            if await tx.run(_SQL[mark], session) == 0:
                return False
            for step in steps:
                await tx.run(_SQL[step], session)
        return True
