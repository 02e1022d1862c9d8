"""Procedures in PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, fields, replace
from typing import Any
from uuid import UUID

from pgvector import HalfVector
from pgvector import Vector as PgVector
from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from octopus.cloud.database import Database, Row, Transaction
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.errors import Conflict
from octopus.paging import Place
from octopus.procedural.ports import Among, Filter
from octopus.procedural.types import Change, Procedure, ProcedureStatus, ProcedureVersion, Step
from octopus.relevance import Vector

_SQL = load_queries(__package__)
_PROCEDURE = TypeAdapter(Procedure)
_STATUSES: dict[Among, list[ProcedureStatus]] = {
    "followed": ["approved"],
    "drafts": ["approved", "pending"],
    "all": ["approved", "pending", "rejected"],
}
_COLUMNS = [column.name for column in fields(Procedure)]


class PostgresProcedureStore:
    """Implements `octopus.procedural.ports.ProcedureStore`."""

    def __init__(self, database: Database, space: EmbeddingSpace) -> None:
        self._database = database
        self._space = space

    async def load_procedures(
        self, tenant_id: str, agent_id: UUID, known_stamp: str | None
    ) -> tuple[str, list[Procedure] | None]:
        params = {"tenant_id": tenant_id, "agent_id": agent_id, "known_stamp": known_stamp}
        rows = await self._database.all(tenant_id, _SQL["load_procedures"], params)
        stamp: str = rows[0]["stamp"]  # a left join from the stamp: there is always a row
        if stamp == known_stamp:
            return stamp, None
        return stamp, [procedure_of(row) for row in rows if row["procedure_id"]]

    async def load_drafts(self, tenant_id: str, agent_id: UUID) -> list[Procedure]:
        params = {"tenant_id": tenant_id, "agent_id": agent_id}
        rows = await self._database.all(tenant_id, _SQL["load_drafts"], params)
        return [procedure_of(row) for row in rows]

    async def nearest_procedures(
        self, tenant_id: str, agent_id: UUID, vector: Vector, limit: int, among: Among = "followed"
    ) -> list[tuple[Procedure, float]]:
        params = {
            "tenant_id": tenant_id,
            "agent_id": agent_id,
            "vector": HalfVector(vector),  # as stored: a cast would be made anew for each row
            "space_id": await self._space.id(),
            "limit": limit,
            "statuses": _STATUSES[among],
            "active_only": among == "followed",
        }
        rows = await self._database.all(tenant_id, _SQL["nearest_procedures"], params)
        return [(procedure_of(row), row["cosine"]) for row in rows]

    async def create_procedure(
        self, tenant_id: str, procedure: Procedure, vectors: Sequence[Vector], change: Change
    ) -> bool:
        space_id = await self._space.id()
        async with self._unless_name_taken(tenant_id, procedure) as tx:
            return await insert_procedure(tx, tenant_id, procedure, space_id, vectors, change)

    async def update_procedure(
        self,
        tenant_id: str,
        procedure: Procedure,
        vectors: Sequence[Vector] | None,
        change: Change,
        changed_by: str,
        note: str | None = None,
    ) -> Procedure | None:
        space_id = await self._space.id()
        written = replace(procedure, version=procedure.version + 1)
        async with self._unless_name_taken(tenant_id, procedure) as tx:
            if await tx.run(_SQL["update_procedure"], _columns(tenant_id, procedure)) == 0:
                return None
            if vectors is not None:
                await tx.run(_SQL["delete_vectors"], _key(tenant_id, procedure.procedure_id))
                await tx.many(_SQL["add_vector"], _vectors(tenant_id, procedure, space_id, vectors))
            await tx.run(_SQL["add_version"], _version(tenant_id, written, change, changed_by, note))
        return written

    async def get_procedure(self, tenant_id: str, procedure_id: UUID) -> Procedure | None:
        row = await self._database.one(tenant_id, _SQL["get_procedure"], _key(tenant_id, procedure_id))
        return procedure_of(row) if row else None

    async def list_procedures(self, tenant_id: str, wanted: Filter, after: Place | None, limit: int) -> list[Procedure]:
        params = {
            "tenant_id": tenant_id,
            **asdict(wanted),
            "after_at": after and after.at,
            "after_id": after and after.id,
            "limit": limit,
        }
        rows = await self._database.all(tenant_id, _SQL["list_procedures"], params)
        return [procedure_of(row) for row in rows]

    async def delete_procedure(self, tenant_id: str, procedure_id: UUID) -> bool:
        return await self._database.run(tenant_id, _SQL["delete_procedure"], _key(tenant_id, procedure_id)) == 1

    async def list_versions(self, tenant_id: str, procedure_id: UUID) -> list[ProcedureVersion]:
        rows = await self._database.all(tenant_id, _SQL["list_versions"], _key(tenant_id, procedure_id))
        return [_procedure_version(row) for row in rows]

    async def get_version(self, tenant_id: str, procedure_id: UUID, version: int) -> ProcedureVersion | None:
        params = {**_key(tenant_id, procedure_id), "version": version}
        row = await self._database.one(tenant_id, _SQL["get_version"], params)
        return _procedure_version(row) if row else None

    @asynccontextmanager
    async def _unless_name_taken(self, tenant_id: str, procedure: Procedure) -> AsyncIterator[Transaction]:
        try:
            async with self._database.transaction(tenant_id) as tx:
                yield tx
        except Conflict as exc:
            raise Conflict(f"There is a procedure named '{procedure.name}' already; choose another name.") from exc


async def insert_procedure(
    tx: Transaction,
    tenant_id: str,
    procedure: Procedure,
    space_id: int,
    vectors: Sequence[Vector],
    change: Change,
) -> bool:
    """Write version 1, in a transaction that may do more. False when there is no such agent."""
    if await tx.run(_SQL["create_procedure"], _columns(tenant_id, procedure)) == 0:
        return False
    await tx.many(_SQL["add_vector"], _vectors(tenant_id, procedure, space_id, vectors))
    await tx.run(_SQL["add_version"], _version(tenant_id, procedure, change, procedure.created_by, None))
    return True


def _key(tenant_id: str, procedure_id: UUID) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "procedure_id": procedure_id}


def _columns(tenant_id: str, procedure: Procedure) -> dict[str, Any]:
    return {**asdict(procedure), "tenant_id": tenant_id, "steps": Jsonb([asdict(step) for step in procedure.steps])}


def _vectors(tenant_id: str, procedure: Procedure, space_id: int, vectors: Sequence[Vector]) -> list[dict[str, Any]]:
    row = {**_key(tenant_id, procedure.procedure_id), "space_id": space_id}
    return [{**row, "ordinal": n, "embedding": PgVector(vector)} for n, vector in enumerate(vectors)]


def _version(tenant_id: str, procedure: Procedure, change: Change, changed_by: str, note: str | None) -> dict[str, Any]:
    return {
        **_key(tenant_id, procedure.procedure_id),
        "version": procedure.version,
        "change": change,
        "note": note,
        "snapshot": Jsonb(_PROCEDURE.dump_python(procedure, mode="json")),
        "changed_by": changed_by,
        "changed_at": procedure.updated_at,
    }


def procedure_of(row: Row) -> Procedure:
    """The procedure of a row that has all its columns."""
    columns = {name: row[name] for name in _COLUMNS}
    return Procedure(**{**columns, "steps": [Step(**step) for step in row["steps"]]})


def _procedure_version(row: Row) -> ProcedureVersion:
    snapshot = _PROCEDURE.validate_python(row["snapshot"])
    return ProcedureVersion(row["version"], row["change"], row["changed_by"], row["changed_at"], row["note"], snapshot)
