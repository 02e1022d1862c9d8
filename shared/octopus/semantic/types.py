"""Documents, their chunks, and what recall found among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from octopus.recall import Score

DocumentStatus = Literal["pending", "indexing", "indexed", "failed", "deleted"]


@dataclass(frozen=True, slots=True)
class Document:
    """A file in the bucket and how far its indexing has come."""

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
class Passage:
    """Text of a document with its place in it, before chunking or as a chunk. `page` counts from 1."""

    text: str
    heading: str | None = None
    page: int | None = None


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
        """File name with heading and page, as shown after ``Source:``."""
        place = [self.heading] if self.heading else []
        place += [f"page {self.page}"] if self.page else []
        return f"{self.file_name} ({', '.join(place)})" if place else self.file_name


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Chunks at or above the minimum relevance, best first, and the best ones below it."""

    chunks: list[RecalledChunk] = field(default_factory=list)
    near_misses: list[RecalledChunk] = field(default_factory=list)
