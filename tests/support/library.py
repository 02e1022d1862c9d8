"""Documents that are indexed already: rows as ingestion leaves them, without its cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import LiteralString, cast
from uuid import UUID, uuid4

import psycopg
from pgvector import Vector as PgVector

from octopus.cloud.database import Database, Transaction
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.embedding import Embedder
from octopus.semantic.search_store import NEAREST

_SQL = load_queries(__package__, "library.sql")
_SEARCH = load_queries("octopus.semantic", "search.sql")
TENANT = "acme"
_PARAMETER = re.compile(r"%\((\w+)\)s")
_TYPES = {
    "tenant_id": "text",
    "agent_ids": "uuid[]",
    "space_id": "integer",
    "text": "text",
    "vector": "halfvec",
    "words": "sparsevec",
    "terms": "integer[]",
    "documents": "uuid[]",
    "generations": "integer[]",
    "ordinals": "integer[]",
    **dict.fromkeys(("candidates", "limit", "leaders", "chunks", "terms_added", "peers"), "integer"),
}


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

    async def add_large(self, owner: str, agent_id: UUID, chunks: int) -> UUID:
        """A document of many chunks; `owner` is the address of the schema's owner, who may build an index."""
        document = uuid4()
        params = {"tenant_id": TENANT, "document_id": document, "agent_id": agent_id, "chunks": chunks, "generation": 1}
        await self._database.run(TENANT, _SQL["add_document"], params)
        async with await psycopg.AsyncConnection.connect(owner, autocommit=True) as connection:
            await connection.execute("select set_config('octopus.tenant_id', %s, false), setseed(0.5)", (TENANT,))
            await connection.execute(_SQL["drop_vector_index"])
            await connection.execute(_SQL["add_chunks"], {**params, "space_id": await self._space.id()})
            await connection.execute(_SQL["add_vector_index"])
            await connection.execute(_SQL["show"], params)
            await connection.execute("analyze")
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

    async def plans(self) -> dict[str, str]:
        """The plan of each query of the search, which is made once for all parameters."""
        plans = {}
        nearest = {f"nearest_{dimensions}": query for dimensions, query in NEAREST.items()}
        for name, query in (_SEARCH | nearest).items():
            if name not in ("one_plan", "walk_indexes", "as_usual", "nearest"):
                async with self._database.transaction(TENANT) as tx:
                    await tx.one(_SEARCH["one_plan"])
                    if name.startswith("nearest"):
                        await tx.one(_SEARCH["walk_indexes"], {"ef_search": "200"})
                    plans[name] = await _generic_plan(tx, query)
        return plans


async def _generic_plan(tx: Transaction, query: str) -> str:
    names = list(dict.fromkeys(_PARAMETER.findall(query)))
    numbered = _PARAMETER.sub(lambda at: f"${names.index(at[1]) + 1}", query)
    types = ", ".join(_TYPES.get(name, "double precision") for name in names)
    nulls = ", ".join("null" for _ in names)
    await tx.run(cast("LiteralString", f"prepare planned ({types}) as {numbered}"))
    rows = await tx.all(cast("LiteralString", f"explain execute planned ({nulls})"))
    await tx.run("deallocate planned")
    return "\n".join(row["QUERY PLAN"] for row in rows)
