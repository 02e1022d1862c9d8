"""Documents that are indexed already: rows as ingestion leaves them, without its cost."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from pgvector import Vector as PgVector

from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.embedding import Embedder

_SQL = load_queries(__package__, "library.sql")
_SEARCH = load_queries("octopus.semantic", "search.sql")
TENANT = "acme"


class Library:
    """Documents of any agents; a chunk is a text."""

    def __init__(self, database: Database, space: EmbeddingSpace, embedder: Embedder) -> None:
        self._database = database
        self._space = space
        self._embedder = embedder

    async def add(self, agent_id: UUID, texts: Sequence[str], *, tenant: str = TENANT) -> UUID:
        document = uuid4()
        params = {"tenant_id": tenant, "document_id": document, "agent_id": agent_id}
        await self._database.run(tenant, _SQL["add_document"], params)
        await self._publish(tenant, agent_id, document, 1, texts)
        return document

    async def replace(self, agent_id: UUID, document: UUID, texts: Sequence[str]) -> None:
        await self._publish(TENANT, agent_id, document, 2, texts)

    async def _publish(
        self, tenant: str, agent_id: UUID, document: UUID, generation: int, texts: Sequence[str]
    ) -> None:
        shown = {"tenant_id": tenant, "document_id": document, "agent_id": agent_id, "generation": generation}
        space_id = await self._space.id()
        rows = [
            {**shown, "ordinal": n, "content": text, "space_id": space_id, "embedding": PgVector(vector)}
            for n, (text, vector) in enumerate(zip(texts, await self._embedder.embed(texts), strict=True))
        ]
        async with self._database.transaction(tenant) as tx:
            await tx.many(_SQL["add_chunk"], rows)
            await tx.run(_SQL["show"], shown)

    async def withdraw(self, document: UUID) -> None:
        params = {"tenant_id": TENANT, "document_id": document, "generation": 0}
        await self._database.run(TENANT, _SQL["show"], params)

    async def delete(self, document: UUID) -> None:
        await self._database.run(TENANT, _SQL["delete_document"], {"tenant_id": TENANT, "document_id": document})

    async def counts(self, agent_id: UUID) -> dict[int, int]:
        return await self._by_term("counts", agent_id)

    async def recounted(self, agent_id: UUID) -> dict[int, int]:
        return await self._by_term("recounted", agent_id)

    async def _by_term(self, query: str, agent_id: UUID) -> dict[int, int]:
        rows = await self._database.all(TENANT, _SQL[query], {"agent_id": agent_id})
        return {row["term"]: row["chunks"] for row in rows}

    async def plans(self, agent_id: UUID, dimensions: int = 384) -> tuple[str, str]:
        """How the search would scan, and how it would walk the index."""
        params = {
            "tenant_id": TENANT,
            "agent_ids": [agent_id],
            "space_id": await self._space.id(),
            "vector": PgVector([1.0] * dimensions),
            "words": "{}/536870912",
            "information": 1.0,
            "share": 1.0,
            "candidates": 50,
        }
        async with self._database.transaction(TENANT) as tx:
            scan = await tx.all("explain " + _SEARCH["scan"], params)
            await tx.one(_SEARCH["walk_indexes"])
            nearest = await tx.all("explain " + _SEARCH[f"nearest_{dimensions}"], params)
        first, second = ("\n".join(row["QUERY PLAN"] for row in rows) for rows in (scan, nearest))
        return first, second
