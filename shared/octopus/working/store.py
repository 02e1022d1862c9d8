"""What working memory keeps in PostgreSQL, which is next to nothing: the token factor of each model."""

from __future__ import annotations

from octopus.cloud.database import PLATFORM, Database
from octopus.cloud.queries import load_queries

_SQL = load_queries(__package__)


class PostgresFactorStore:
    """Implements `octopus.working.token_factor.FactorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_factor(self, model: str) -> float | None:
        row = await self._database.one(PLATFORM, _SQL["get_factor"], {"model": model})
        return row["factor"] if row else None

    async def put_factor(self, model: str, factor: float) -> None:
        await self._database.run(PLATFORM, _SQL["put_factor"], {"model": model, "factor": factor})
