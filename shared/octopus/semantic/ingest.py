"""Index a document: read it, cut it, embed it, and let readers see it whole."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from octopus.embedding import Embedder
from octopus.errors import DocumentRejected, Unavailable
from octopus.semantic.chunking import Chunker
from octopus.semantic.object_key import tenant_of
from octopus.semantic.ports import KnowledgeStore, Objects, Reader, TokenCounter
from octopus.semantic.types import Claim, EmbeddedChunk, Passage, StoredObject

Outcome = Literal["indexed", "unchanged", "failed", "gone", "refused"]

_BATCH = 64  # chunks embedded and stored at a time


class Superseded(Unavailable):
    """The document was claimed anew while it was being indexed; the retry finds out what is left to do."""


class IngestDocument:
    """The write side of semantic memory.

    Each attempt claims the document before it reads the object, and only the newest claim can write. The attempt
    that comes last has read the newest object, so events may come twice, late or in any order.
    """

    def __init__(
        self,
        store: KnowledgeStore,
        objects: Objects,
        reader: Reader,
        chunker: Chunker,
        embedder: Embedder,
        count_tokens: TokenCounter,
        *,
        max_bytes: int,
    ) -> None:
        self._store = store
        self._objects = objects
        self._reader = reader
        self._chunker = chunker
        self._embedder = embedder
        self._count_tokens = count_tokens
        self._max_bytes = max_bytes

    async def ingest(self, object_key: str, sequencer: str | None = None, *, anew: bool = False) -> Outcome:
        """Bring the index up to the object that lies under the key now.

        `refused`: the key belongs to no document, or a later event has been seen. `unchanged`: the last attempt came
        to an end for this very content, and `anew` is false. Raises `Unavailable` when a retry may help.
        """
        tenant_id = tenant_of(object_key)
        claim = await self._store.claim(tenant_id, object_key, sequencer) if tenant_id else None
        if claim is None:
            return "refused"
        found: StoredObject | None = None
        with TemporaryDirectory(prefix="octopus-") as directory:
            path = Path(directory) / "document"
            try:
                found = await self._objects.download(object_key, path, self._max_bytes)
                if found is None:
                    return "gone"
                if not anew and (claim.settled_hash, claim.settled_recipe) == (
                    found.content_hash,
                    self._recipe,
                ):
                    return "unchanged"
                await self._index(claim, found, path)
            except DocumentRejected as rejected:
                _insist(await self._store.reject(claim, found, self._recipe, rejected.detail))
                return "failed"
        return "indexed"

    async def _index(self, claim: Claim, found: StoredObject, path: Path) -> None:
        _insist(await self._store.begin(claim, found))
        chunks = self._chunker.chunks(self._reader.blocks(path, claim.media_type))
        ordinal = 0
        while batch := await asyncio.to_thread(_take, chunks, _BATCH):
            _insist(await self._store.stage(claim, await self._embed(claim, batch, ordinal)))
            ordinal += len(batch)
        if not ordinal:
            raise DocumentRejected("The document has no text.")
        _insist(await self._store.publish(claim, found, self._recipe))

    async def _embed(self, claim: Claim, passages: list[Passage], first: int) -> list[EmbeddedChunk]:
        """The chunks with vectors for those texts that the document has not embedded before."""
        texts = [embedded_text(passage) for passage in passages]
        hashes = [hashlib.sha256(text.encode()).digest() for text in texts]
        known = await self._store.embedded(claim, hashes)
        new = {h: text for h, text in zip(hashes, texts, strict=True) if h not in known}
        vectors = dict(zip(new, await self._embedder.embed(list(new.values())), strict=True))
        return [
            EmbeddedChunk(first + i, passage, self._count_tokens(passage.text), h, vectors.get(h))
            for i, (passage, h) in enumerate(zip(passages, hashes, strict=True))
        ]

    @property
    def _recipe(self) -> str:
        return f"{self._embedder.model}"


def embedded_text(passage: Passage) -> str:
    """What the vector of a chunk stands for: its heading tells what its text is about."""
    return f"{passage.heading}\n{passage.text}" if passage.heading else passage.text


def _take(chunks: Iterator[Passage], count: int) -> list[Passage]:
    return list(islice(chunks, count))


def _insist(newest: bool) -> None:
    if not newest:
        raise Superseded
