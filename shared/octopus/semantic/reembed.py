"""The chunks of a document get the vectors of another embedding model. They stay as they were cut."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Literal, Protocol
from uuid import UUID

from octopus.embedding import Embedder, embed_whole
from octopus.embeddings.types import Item
from octopus.relevance import Vector
from octopus.semantic.ingest import embedded_text
from octopus.semantic.types import Passage

BATCH = 64  # texts that are embedded and stored at a time: what a worker loses when it dies


class ChunkVectorStore(Protocol):
    """Vectors of one document's chunks in a space that is not the current one. Every method is atomic."""

    async def take_known(self, tenant_id: str, document_id: UUID, space_id: int) -> None:
        """Give chunks the vectors of equal ones."""
        ...

    async def texts(self, tenant_id: str, document_id: UUID, space_id: int, limit: int) -> dict[bytes, Passage]:
        """Texts that have no vector, by content hash."""
        ...

    async def add(self, tenant_id: str, document_id: UUID, space_id: int, vectors: Mapping[bytes, Vector]) -> None:
        """Give every chunk of these texts its vector; those that are gone by now are left out."""
        ...

    async def drop(self, tenant_id: str, document_id: UUID, space_id: int) -> None: ...


class DocumentVectors:
    """Implements `octopus.embeddings.ports.MemoryVectors`."""

    memory: Literal["documents"] = "documents"

    def __init__(self, store: ChunkVectorStore) -> None:
        self._store = store

    async def embed(self, item: Item, space_id: int, embedder: Embedder, until: float) -> bool:
        document = item.tenant_id, item.item_id, space_id
        await self._store.take_known(*document)
        while passages := await self._store.texts(*document, BATCH):
            if time.monotonic() > until:
                return False
            vectors = await embed_whole(embedder, [embedded_text(passage) for passage in passages.values()])
            await self._store.add(*document, dict(zip(passages, vectors, strict=True)))
        return True

    async def drop(self, item: Item, space_id: int) -> None:
        await self._store.drop(item.tenant_id, item.item_id, space_id)
