"""Documents and chunks in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, LiteralString
from uuid import UUID

from pgvector import Vector as PgVector

from octopus.cloud.database import Database, Row
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.semantic.types import (
    Claim,
    Document,
    EmbeddedChunk,
    Lane,
    NewDocument,
    QueuedDocument,
    ReindexJob,
    Staging,
    StoredObject,
)

_SQL = load_queries(__package__)


class PostgresKnowledgeStore:
    """Implements `octopus.semantic.ports.KnowledgeStore` and `octopus.semantic.reindex.ReindexStore`."""

    def __init__(self, database: Database, space: EmbeddingSpace) -> None:
        self._database = database
        self._space = space

    async def has_agent(self, tenant_id: str, agent_id: UUID) -> bool:
        params = {"tenant_id": tenant_id, "agent_id": agent_id}
        return await self._database.one(tenant_id, _SQL["has_agent"], params) is not None

    async def add_document(self, tenant_id: str, document: NewDocument) -> Document | None:
        params = {"tenant_id": tenant_id, **asdict(document)}
        row = await self._database.one(tenant_id, _SQL["add_document"], params)
        return Document(**row) if row else None

    async def get_document(self, tenant_id: str, agent_id: UUID, document_id: UUID) -> Document | None:
        params = {"tenant_id": tenant_id, "agent_id": agent_id, "document_id": document_id}
        row = await self._database.one(tenant_id, _SQL["get_document"], params)
        return Document(**row) if row else None

    async def list_documents(self, tenant_id: str, agent_id: UUID) -> list[Document]:
        params = {"tenant_id": tenant_id, "agent_id": agent_id}
        rows = await self._database.all(tenant_id, _SQL["list_documents"], params)
        return [Document(**row) for row in rows]

    async def delete_document(self, tenant_id: str, agent_id: UUID, document_id: UUID) -> bool:
        params = {"tenant_id": tenant_id, "agent_id": agent_id, "document_id": document_id}
        return await self._database.run(tenant_id, _SQL["delete_document"], params) == 1

    async def claim(self, tenant_id: str, object_key: str, sequencer: str | None) -> Claim | None:
        params = {"tenant_id": tenant_id, "object_key": object_key, "sequencer": sequencer}
        row = await self._database.one(tenant_id, _SQL["claim"], params)
        return Claim(tenant_id, **row) if row else None

    async def begin(self, claim: Claim, found: StoredObject, recipe: str) -> Staging | None:
        async with self._database.transaction(claim.tenant_id) as tx:
            row = await tx.one(_SQL["begin"], _held(claim, recipe=recipe, **asdict(found)))
            if row is None:
                return None
            staged = await tx.one(_SQL["count_staged"], _held(claim, generation=row["generation"]))
        assert staged is not None  # a count is always there
        return Staging(claim, found, recipe, row["generation"], staged["chunks"])

    async def embedded(self, staging: Staging, hashes: Sequence[bytes]) -> set[bytes]:
        params = _held(staging.claim, space_id=await self._space.id(), hashes=list(hashes))
        rows = await self._database.all(staging.claim.tenant_id, _SQL["embedded"], params)
        return {row["content_hash"] for row in rows}

    async def stage(self, staging: Staging, chunks: Sequence[EmbeddedChunk]) -> bool:
        claim, space_id = staging.claim, await self._space.id()
        new, known = [], []
        for chunk in chunks:
            params = _held(
                claim,
                generation=staging.generation,
                agent_id=claim.agent_id,
                ordinal=chunk.ordinal,
                content=chunk.passage.text,
                heading=chunk.passage.heading,
                page=chunk.passage.page,
                token_count=chunk.token_count,
                content_hash=chunk.content_hash,
                space_id=space_id,
            )
            if chunk.vector is None:
                known.append(params)
            else:
                new.append({**params, "embedding": PgVector(chunk.vector)})
        async with self._database.transaction(claim.tenant_id) as tx:
            if await tx.one(_SQL["hold_claim"], _held(claim)) is None:
                return False
            await tx.many(_SQL["stage_chunk"], new)
            await tx.many(_SQL["stage_known_chunk"], known)
        return True

    async def publish(self, staging: Staging) -> bool:
        return await self._settle(
            staging.claim,
            _SQL["publish"],
            generation=staging.generation,
            content_hash=staging.found.content_hash,
            recipe=staging.recipe,
        )

    async def reject(self, claim: Claim, content_hash: str | None, recipe: str, reason: str) -> bool:
        return await self._settle(claim, _SQL["reject"], content_hash=content_hash, recipe=recipe, reason=reason)

    async def postpone(self, claim: Claim, reason: str) -> bool:
        return await self._database.run(claim.tenant_id, _SQL["postpone"], _held(claim, reason=reason)) == 1

    async def withdraw(self, claim: Claim) -> bool:
        return await self._settle(claim, _SQL["withdraw"])

    async def announced(self, claim: Claim) -> None:
        await self._database.run(claim.tenant_id, _SQL["announced"], _held(claim))

    async def start_reindex(self, tenant_id: str, agent_id: UUID, job_id: UUID, requested_by: str) -> None:
        params = {"tenant_id": tenant_id, "agent_id": agent_id, "job_id": job_id, "requested_by": requested_by}
        await self._database.run(tenant_id, _SQL["start_reindex"], params)

    async def latest_reindex(self, tenant_id: str, agent_id: UUID) -> ReindexJob | None:
        params = {"tenant_id": tenant_id, "agent_id": agent_id}
        row = await self._database.one(tenant_id, _SQL["latest_reindex"], params)
        return ReindexJob(**row) if row else None

    async def take_for_reindex(self, lane: Lane) -> QueuedDocument | None:
        params = {"tenant_id": lane.tenant_id, "job_id": lane.job_id, "lane": lane.number}
        row = await self._database.one(lane.tenant_id, _SQL["take_for_reindex"], params)
        return QueuedDocument(**row) if row else None

    async def finish_reindex(self, lane: Lane, document_id: UUID, *, failed: bool) -> None:
        params = {
            "tenant_id": lane.tenant_id,
            "job_id": lane.job_id,
            "document_id": document_id,
            "failed": int(failed),
        }
        await self._database.run(lane.tenant_id, _SQL["finish_reindex"], params)

    async def _settle(self, claim: Claim, statement: LiteralString, **values: Any) -> bool:
        async with self._database.transaction(claim.tenant_id) as tx:
            if await tx.run(statement, _held(claim, **values)) == 0:
                return False
            await tx.run(_SQL["drop_dead_chunks"], _held(claim))
        return True


def _held(claim: Claim, **values: Any) -> Row:
    return {
        "tenant_id": claim.tenant_id,
        "document_id": claim.document_id,
        "attempt": claim.attempt,
        **values,
    }
