"""Vectors of chunks in PostgreSQL, for a change of the embedding model."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from pgvector import Vector as PgVector

from octopus.cloud.database import Database, Row
from octopus.cloud.queries import load_queries
from octopus.relevance import Vector
from octopus.semantic.types import Passage

_SQL = load_queries(__package__, "reembed.sql")


class PostgresChunkVectors:
    """Implements `octopus.semantic.reembed.ChunkVectorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_known(self, tenant_id: str, document_id: UUID, space_id: int) -> None:
        params = _of(tenant_id, document_id, space_id)
        async with self._database.transaction(tenant_id) as tx:
            await tx.one(_SQL["hold_document"], params)
            await tx.run(_SQL["take_known_vectors"], params)

    async def texts(self, tenant_id: str, document_id: UUID, space_id: int, limit: int) -> dict[bytes, Passage]:
        params = {**_of(tenant_id, document_id, space_id), "limit": limit}
        rows = await self._database.all(tenant_id, _SQL["texts_to_embed"], params)
        return {row["content_hash"]: Passage(row["content"], row["heading"]) for row in rows}

    async def add(self, tenant_id: str, document_id: UUID, space_id: int, vectors: Mapping[bytes, Vector]) -> None:
        params = _of(tenant_id, document_id, space_id)
        rows = [{**params, "content_hash": h, "embedding": PgVector(vector)} for h, vector in vectors.items()]
        async with self._database.transaction(tenant_id) as tx:
            await tx.one(_SQL["hold_document"], params)
            await tx.many(_SQL["add_vector"], rows)

    async def drop(self, tenant_id: str, document_id: UUID, space_id: int) -> None:
        await self._database.run(tenant_id, _SQL["drop_vectors"], _of(tenant_id, document_id, space_id))


def _of(tenant_id: str, document_id: UUID, space_id: int) -> Row:
    return {"tenant_id": tenant_id, "document_id": document_id, "space_id": space_id}
