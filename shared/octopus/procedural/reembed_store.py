"""Vectors of procedures in PostgreSQL, for a change of the embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pgvector import Vector as PgVector

from octopus.cloud.database import Database, Row
from octopus.cloud.queries import load_queries
from octopus.procedural.store import procedure_of
from octopus.procedural.types import Procedure
from octopus.relevance import Vector

_SQL = load_queries(__package__, "reembed.sql")


class PostgresProcedureVectors:
    """Implements `octopus.procedural.reembed.ProcedureVectorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def to_embed(self, tenant_id: str, procedure_id: UUID, space_id: int) -> Procedure | None:
        row = await self._database.one(tenant_id, _SQL["texts_to_embed"], _of(tenant_id, procedure_id, space_id))
        return procedure_of(row) if row else None

    async def add(self, tenant_id: str, procedure: Procedure, space_id: int, vectors: Sequence[Vector]) -> bool:
        params = _of(tenant_id, procedure.procedure_id, space_id)
        rows = [{**params, "ordinal": n, "embedding": PgVector(vector)} for n, vector in enumerate(vectors)]
        async with self._database.transaction(tenant_id) as tx:
            if await tx.one(_SQL["hold_procedure"], {**params, "version": procedure.version}) is None:
                return False
            await tx.many(_SQL["add_vector"], rows)
        return True

    async def drop(self, tenant_id: str, procedure_id: UUID, space_id: int) -> None:
        await self._database.run(tenant_id, _SQL["drop_vectors"], _of(tenant_id, procedure_id, space_id))


def _of(tenant_id: str, procedure_id: UUID, space_id: int) -> Row:
    return {"tenant_id": tenant_id, "procedure_id": procedure_id, "space_id": space_id}
