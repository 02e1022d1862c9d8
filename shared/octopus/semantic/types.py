"""Documents, their chunks, and what recall found among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from octopus.recall import Score
from octopus.relevance import Vector

DocumentStatus = Literal["pending", "indexing", "indexed", "failed", "deleted"]
SearchMode = Literal["vector", "hybrid"]


@dataclass(frozen=True, slots=True)
class Document:
    """A file in the bucket and how far its indexing has come.

    Counts and `indexed_at` belong to what recall sees now; `status` and `failure_reason` to the newest attempt.
    """

    document_id: UUID
    agent_id: UUID
    file_name: str
    object_key: str
    media_type: str
    category: str | None
    status: DocumentStatus
    failure_reason: str | None
    size_bytes: int | None
    chunk_count: int
    token_count: int
    created_by: str
    created_at: datetime
    updated_at: datetime
    indexed_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document that has been announced; its object comes later."""

    document_id: UUID
    agent_id: UUID
    file_name: str
    object_key: str
    media_type: str
    category: str | None
    size_bytes: int | None
    created_by: str


@dataclass(frozen=True, slots=True)
class Upload:
    """A form for the browser: POST `fields` and then the file, as multipart/form-data, to `url`."""

    url: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One version of an object. `content_hash` is the SHA-256 of its bytes, in hexadecimal."""

    content_hash: str
    size_bytes: int
    version_id: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write a document's index, until somebody claims it anew.

    `status` is what the last attempt left; `content_hash` and `recipe` say for which content, and by which way of
    reading, cutting and embedding, it came to an end; None if it did not. `announced`: the bus has heard of that end.
    """

    tenant_id: str
    document_id: UUID
    agent_id: UUID
    attempt: int
    media_type: str
    status: DocumentStatus
    content_hash: str | None
    recipe: str | None
    announced: bool


@dataclass(frozen=True, slots=True)
class Staging:
    """Where the chunks of an attempt go. `chunks` of them are there from an attempt that was interrupted."""

    claim: Claim
    found: StoredObject
    recipe: str
    generation: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One of the workers of a job that indexes an agent's documents anew."""

    tenant_id: str
    job_id: UUID
    number: int


@dataclass(frozen=True, slots=True)
class QueuedDocument:
    """A document that a lane has taken."""

    document_id: UUID
    object_key: str


@dataclass(frozen=True, slots=True)
class ReindexJob:
    """How far a job is: `remaining` of `total` documents are not done, `failed` of the others cannot be indexed."""

    job_id: UUID
    total: int
    remaining: int
    failed: int
    requested_by: str
    requested_at: datetime


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, or lines that belong together (a table, code), with its place in the document.

    `page` counts from 1. Lines are never cut within, if that can be avoided; `header` is repeated above them wherever
    a chunk begins among them.
    """

    text: str
    heading: str | None = None
    page: int | None = None
    kind: Literal["prose", "lines"] = "prose"
    header: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of a chunk with its place in the document. `page` counts from 1: where the chunk begins."""

    text: str
    heading: str | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class EmbeddedChunk:
    """A chunk ready to be stored. `vector` is None where the document has a chunk of the same hash."""

    ordinal: int
    passage: Passage
    token_count: int
    content_hash: bytes
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that a search found, with its raw scores (see `octopus.ranking`) and its ranks by them (see
    `octopus.recall.Score`). `ordinal` counts the chunks of a document from 0."""

    document_id: UUID
    ordinal: int
    file_name: str
    heading: str | None
    page: int | None
    content: str
    token_count: int
    cosine: float
    share: float = 0.0
    cosine_rank: int | None = None
    share_rank: int | None = None


def chunk_source(file_name: str, heading: str | None, page: int | None) -> str:
    """File name with heading and page, as shown after ``Source:``."""
    place = [heading] if heading else []
    place += [f"page {page}"] if page else []
    return f"{file_name} ({', '.join(place)})" if place else file_name


@dataclass(frozen=True, slots=True)
class RecalledChunk:
    """A chunk that recall found. `ordinal` counts the chunks of a document from 0; `token_count` is raw."""

    document_id: UUID
    ordinal: int
    file_name: str
    heading: str | None
    page: int | None
    content: str
    token_count: int
    score: Score

    @property
    def source(self) -> str:
        return chunk_source(self.file_name, self.heading, self.page)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Chunks at or above the minimum relevance, best first, and the best ones below it."""

    chunks: list[RecalledChunk] = field(default_factory=list)
    near_misses: list[RecalledChunk] = field(default_factory=list)
