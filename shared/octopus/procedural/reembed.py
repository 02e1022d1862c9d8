"""A procedure gets the vectors of another embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol
from uuid import UUID

from octopus.embedding import Embedder, embed_whole
from octopus.embeddings.types import Item
from octopus.procedural.draft import embedded_texts
from octopus.procedural.types import Procedure
from octopus.relevance import Vector


class ProcedureVectorStore(Protocol):
    """Vectors of one procedure in a space that is not the current one. Every method is atomic."""

    async def to_embed(self, tenant_id: str, procedure_id: UUID, space_id: int) -> Procedure | None:
        """The procedure, if it has no vectors."""
        ...

    async def add(self, tenant_id: str, procedure: Procedure, space_id: int, vectors: Sequence[Vector]) -> bool:
        """Write its vectors; False, and nothing written, when it is gone or has another version by now."""
        ...

    async def drop(self, tenant_id: str, procedure_id: UUID, space_id: int) -> None: ...


class ProcedureVectors:
    """Implements `octopus.embeddings.ports.MemoryVectors`."""

    memory: Literal["procedures"] = "procedures"

    def __init__(self, store: ProcedureVectorStore) -> None:
        self._store = store

    async def embed(self, item: Item, space_id: int, embedder: Embedder, until: float) -> bool:
        procedure = await self._store.to_embed(item.tenant_id, item.item_id, space_id)
        if procedure is None:
            return True
        vectors = await embed_whole(embedder, embedded_texts(procedure))
        return await self._store.add(item.tenant_id, procedure, space_id, vectors)

    async def drop(self, item: Item, space_id: int) -> None:
        await self._store.drop(item.tenant_id, item.item_id, space_id)
