"""Vectors of traces in PostgreSQL, for a change of the embedding model."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from pgvector import Vector as PgVector

from octopus.cloud.database import Database, Row
from octopus.cloud.queries import load_queries
from octopus.episodic.context import TraceVectors
from octopus.episodic.reembed import Text

_SQL = load_queries(__package__, "reembed.sql")


class PostgresTraceVectors:
    """Implements `octopus.episodic.reembed.TraceVectorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def texts(self, tenant_id: str, episode_id: UUID, space_id: int) -> list[Text]:
        params = _of(tenant_id, episode_id, space_id)
        return [Text(**row) for row in await self._database.all(tenant_id, _SQL["texts_to_embed"], params)]

    async def add(self, tenant_id: str, episode_id: UUID, space_id: int, vectors: Mapping[int, TraceVectors]) -> None:
        params = _of(tenant_id, episode_id, space_id)
        rows = [
            {
                **params,
                "ordinal": ordinal,
                "embedding": PgVector(trace.embedding),
                "context": PgVector(trace.context),
                "parts": [PgVector(part) for part in trace.parts],
            }
            for ordinal, trace in vectors.items()
        ]
        async with self._database.transaction(tenant_id) as tx:
            await tx.one(_SQL["hold_episode"], params)
            await tx.many(_SQL["add_trace"], rows)

    async def drop(self, tenant_id: str, episode_id: UUID, space_id: int) -> None:
        await self._database.run(tenant_id, _SQL["drop_vectors"], _of(tenant_id, episode_id, space_id))


def _of(tenant_id: str, episode_id: UUID, space_id: int) -> Row:
    return {"tenant_id": tenant_id, "episode_id": episode_id, "space_id": space_id}
