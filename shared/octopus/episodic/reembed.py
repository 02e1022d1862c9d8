"""The traces of an episode get the vectors of another embedding model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from octopus.embedding import Embedder
from octopus.embeddings.types import Item
from octopus.episodic.context import TraceVectors, trace_vectors
from octopus.episodic.ports import TraceKind


@dataclass(frozen=True, slots=True)
class Text:
    """What a trace says."""

    ordinal: int
    kind: TraceKind
    content: str


class TraceVectorStore(Protocol):
    """Vectors of one episode's traces in a space that is not the current one. Every method is atomic."""

    async def texts(self, tenant_id: str, episode_id: UUID, space_id: int) -> list[Text]:
        """All traces in order, if one of them has no vector: a trace's context is made of its neighbours."""
        ...

    async def add(self, tenant_id: str, episode_id: UUID, space_id: int, vectors: Mapping[int, TraceVectors]) -> None:
        """Give the traces their vectors, by ordinal; those that are gone by now are left out."""
        ...

    async def drop(self, tenant_id: str, episode_id: UUID, space_id: int) -> None: ...


class EpisodeVectors:
    """Implements `octopus.embeddings.ports.MemoryVectors`."""

    memory: Literal["episodes"] = "episodes"

    def __init__(self, store: TraceVectorStore) -> None:
        self._store = store

    async def embed(self, item: Item, space_id: int, embedder: Embedder, until: float) -> bool:
        """An episode is embedded whole, whatever the time."""
        texts = await self._store.texts(item.tenant_id, item.item_id, space_id)
        vectors = await trace_vectors(embedder, [text.content for text in texts], [t.kind == "passage" for t in texts])
        by_ordinal = {text.ordinal: trace for text, trace in zip(texts, vectors, strict=True)}
        await self._store.add(item.tenant_id, item.item_id, space_id, by_ordinal)
        return True

    async def drop(self, item: Item, space_id: int) -> None:
        await self._store.drop(item.tenant_id, item.item_id, space_id)
