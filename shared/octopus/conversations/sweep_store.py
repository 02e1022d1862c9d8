"""Sessions of every tenant, as the sweep's role sees them: when they were used, and nothing that was said."""

from __future__ import annotations

from octopus.cloud.database import Database
from octopus.cloud.queries import load_queries
from octopus.conversations.sweep import Found
from octopus.memory_config import MemoryConfig

_SQL = load_queries(__package__, "sweep.sql")
_NO_TENANT = ""  # the policies of the role octopus_sweep reach across tenants


class PostgresSessionFinder:
    """Implements `octopus.conversations.sweep.SessionFinder` under the role octopus_sweep."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def abandoned_sessions(self, defaults: MemoryConfig, limit: int) -> list[Found]:
        params = {
            "idle_minutes": defaults.session_idle_minutes,
            "max_hours": defaults.session_max_hours,
            "limit": limit,
        }
        rows = await self._database.all(_NO_TENANT, _SQL["abandoned_sessions"], params)
        return [Found(**row) for row in rows]

    async def unsettled_sessions(self, patience_minutes: int, limit: int) -> list[Found]:
        params = {"patience_minutes": patience_minutes, "limit": limit}
        rows = await self._database.all(_NO_TENANT, _SQL["unsettled_sessions"], params)
        return [Found(**row) for row in rows]
