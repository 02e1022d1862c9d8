"""Judged sessions and the use of procedures in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.errors import Conflict
from octopus.procedural.store import insert_procedure
from octopus.procedural.types import Capture, Procedure, ProcedureStatistics
from octopus.relevance import Vector

_SQL = load_queries(__package__, "capture.sql")


class PostgresCaptureStore:
    """Implements `octopus.procedural.ports.CaptureStore`."""

    def __init__(self, database: Database, space: EmbeddingSpace) -> None:
        self._database = database
        self._space = space

    async def get_capture(self, tenant_id: str, conversation_id: UUID) -> Capture | None:
        row = await self._database.one(tenant_id, _SQL["get_capture"], _key(tenant_id, conversation_id))
        return Capture(**row) if row else None

    async def put_capture(
        self, tenant_id: str, capture: Capture, candidate: Procedure | None = None, vectors: Sequence[Vector] = ()
    ) -> bool:
        key = _key(tenant_id, capture.conversation_id)
        verdict = {
            **key,
            "outcome": capture.outcome,
            "procedure_id": capture.procedure_id,
            "quote": capture.quote,
            "quote_seq": capture.quote_seq,
        }
        space_id = await self._space.id()
        async with self._database.transaction(tenant_id) as tx:
            if await tx.run(_SQL["put_capture"], verdict) == 0:
                return False
            if candidate is not None:
                if not await insert_procedure(tx, tenant_id, candidate, space_id, vectors, "captured"):
                    raise Conflict("The agent was deleted at the same time.")
                await tx.run(_SQL["set_candidate"], {**key, "procedure_id": candidate.procedure_id})
        return True

    async def note_announced(self, tenant_id: str, conversation_id: UUID) -> None:
        await self._database.run(tenant_id, _SQL["note_announced"], _key(tenant_id, conversation_id))

    async def list_captures(self, tenant_id: str, procedure_id: UUID) -> list[Capture]:
        params = {"tenant_id": tenant_id, "procedure_id": procedure_id}
        return [Capture(**row) for row in await self._database.all(tenant_id, _SQL["list_captures"], params)]

    async def statistics(self, tenant_id: str, procedure_id: UUID | None) -> list[ProcedureStatistics]:
        params = {"tenant_id": tenant_id, "procedure_id": procedure_id}
        rows = await self._database.all(tenant_id, _SQL["statistics"], params)
        return [ProcedureStatistics(**row) for row in rows]


def _key(tenant_id: str, conversation_id: UUID) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "conversation_id": conversation_id}
