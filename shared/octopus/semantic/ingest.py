"""Index a document: read it, cut it, embed it, and let readers see it whole."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from octopus.embedding import Embedder
from octopus.errors import DocumentRejected, Unavailable
from octopus.semantic.chunking import Chunker
from octopus.semantic.news import DocumentNews
from octopus.semantic.object_key import tenant_of
from octopus.semantic.ports import IndexQueue, KnowledgeStore, Objects, Reader, TokenCounter
from octopus.semantic.types import Claim, EmbeddedChunk, Passage, Staging, StoredObject

Outcome = Literal["indexed", "unchanged", "failed", "gone", "refused", "unfinished"]

_BATCH = 64  # chunks that are embedded and stored at a time
_VERSION = "v1"  # of reading and cutting; another one has unchanged content indexed anew


class Superseded(Unavailable):
    """The document was claimed anew while it was being indexed; the retry finds out what is left to do."""


class _OutOfTime(Exception):
    """What has been staged stays; the next attempt goes on."""


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
        queue: IndexQueue,
        news: DocumentNews,
        count_tokens: TokenCounter,
        *,
        cutting: str,
        max_bytes: int,
    ) -> None:
        """`cutting` names how the chunker cuts: with another name, unchanged content is indexed anew."""
        self._store = store
        self._objects = objects
        self._reader = reader
        self._chunker = chunker
        self._embedder = embedder
        self._queue = queue
        self._news = news
        self._count_tokens = count_tokens
        self._max_bytes = max_bytes
        self._recipe = f"{_VERSION} {cutting} {embedder.model}"

    async def ingest(
        self, object_key: str, sequencer: str | None = None, *, anew: bool = False, until: float | None = None
    ) -> Outcome:
        """The same as `attempt`; what is `unfinished` is left to another message."""
        outcome = await self.attempt(object_key, sequencer, anew=anew, until=until)
        if outcome == "unfinished":
            await self._queue.put(object_key, anew=anew)
        return outcome

    async def attempt(
        self, object_key: str, sequencer: str | None = None, *, anew: bool = False, until: float | None = None
    ) -> Outcome:
        """Bring the index up to the object that lies under the key now.

        `unfinished`: the time `until` (of `time.monotonic`) has come; the next attempt goes on from there.
        `refused`: the key belongs to no document, or a later event has been seen. `unchanged`: the last attempt came
        to an end for this very content, and `anew` is false. Raises `Unavailable` when a retry may help.
        """
        tenant_id = tenant_of(object_key)
        claim = await self._store.claim(tenant_id, object_key, sequencer) if tenant_id else None
        if claim is None:
            return "refused"
        try:
            with TemporaryDirectory(prefix="octopus-") as directory:
                return await self._bring_up(claim, object_key, Path(directory) / "document", anew, until)
        except _OutOfTime:
            return "unfinished"
        except Superseded:
            raise
        except Unavailable as exc:
            with suppress(Unavailable):
                await self._store.postpone(claim, f"Interrupted, and will be tried again: {exc.detail}")
            raise

    async def _bring_up(self, claim: Claim, key: str, path: Path, anew: bool, until: float | None) -> Outcome:
        found: StoredObject | None = None
        try:
            found = await self._objects.download(key, path, self._max_bytes)
            if found is None:
                return "gone"
            if not anew and (claim.content_hash, claim.recipe) == (found.content_hash, self._recipe):
                if not claim.announced:  # the last attempt was interrupted just before
                    await self._news.tell(claim, "DocumentIndexed" if claim.status == "indexed" else "DocumentFailed")
                return "unchanged"
            staging = await self._store.begin(claim, found, self._recipe)
            if staging is None:
                raise Superseded
            await self._stage(staging, path, until)
            _insist(await self._store.publish(staging))
        except DocumentRejected as rejected:
            content_hash = found.content_hash if found else None
            _insist(await self._store.reject(claim, content_hash, self._recipe, rejected.detail))
            await self._news.tell(claim, "DocumentFailed")
            return "failed"
        await self._news.tell(claim, "DocumentIndexed")
        return "indexed"

    async def _stage(self, staging: Staging, path: Path, until: float | None) -> None:
        """Read, cut, embed and write what an earlier attempt has not.

        While a batch is embedded the next is being cut and the last is being written.
        """
        blocks = self._reader.blocks(path, staging.claim.media_type)
        chunks = self._chunker.chunks(blocks)
        ordinal = staging.chunks
        coming = asyncio.create_task(asyncio.to_thread(_take, chunks, _BATCH, skip=ordinal))
        written = asyncio.create_task(self._store.stage(staging, []))
        try:
            while batch := await coming:
                if until is not None and time.monotonic() > until:
                    raise _OutOfTime
                coming = asyncio.create_task(asyncio.to_thread(_take, chunks, _BATCH))
                embedded = await self._embed(staging, batch, ordinal)
                _insist(await written)
                written = asyncio.create_task(self._store.stage(staging, embedded))
                ordinal += len(batch)
            _insist(await written)
        finally:
            # Nobody may be reading when the reader is closed, nor writing when the attempt is over.
            await asyncio.gather(coming, written, return_exceptions=True)
            blocks.close()

    async def _embed(self, staging: Staging, passages: list[Passage], first: int) -> list[EmbeddedChunk]:
        """The chunks, with vectors for those texts that the document has not embedded before."""
        texts = [embedded_text(passage) for passage in passages]
        hashes = [hashlib.sha256(text.encode()).digest() for text in texts]
        known = await self._store.embedded(staging, hashes)
        new = {h: text for h, text in zip(hashes, texts, strict=True) if h not in known}
        vectors = dict(zip(new, await self._embedder.embed(list(new.values())), strict=True))
        return [
            EmbeddedChunk(first + i, passage, self._count_tokens(passage.text), h, vectors.get(h))
            for i, (passage, h) in enumerate(zip(passages, hashes, strict=True))
        ]


def embedded_text(passage: Passage) -> str:
    """What the vector of a chunk stands for: its heading tells what its text is about."""
    return f"{passage.heading}\n{passage.text}" if passage.heading else passage.text


def _take(chunks: Iterator[Passage], count: int, skip: int = 0) -> list[Passage]:
    return list(islice(chunks, skip, skip + count))


def _insist(newest: bool) -> None:
    if not newest:
        raise Superseded
