"""What semantic memory needs from the outside."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Protocol
from uuid import UUID

from octopus.relevance import Vector
from octopus.semantic.types import (
    Block,
    Claim,
    Document,
    EmbeddedChunk,
    Hit,
    NewDocument,
    SearchMode,
    Staging,
    StoredObject,
    Upload,
)

TokenCounter = Callable[[str], int]


class Objects(Protocol):
    """The bucket that documents are put into. Every method raises `Unavailable` when it does not answer."""

    async def upload_form(self, key: str, media_type: str, max_bytes: int) -> Upload:
        """A form with which a browser can put this one object, of this type and up to this size, for an hour."""
        ...

    async def exists(self, key: str) -> bool: ...

    async def download(self, key: str, to: Path, max_bytes: int) -> StoredObject | None:
        """Write the object to a file, a piece at a time; None when it is gone.

        Raises `DocumentRejected` when it is larger than `max_bytes`.
        """
        ...

    async def delete(self, key: str) -> None:
        """Delete the object; no error when it is gone."""
        ...


class Reader(Protocol):
    """Gets text out of files."""

    def blocks(self, path: Path, media_type: str) -> Generator[Block]:
        """The text in reading order. Waits, so iterate in a worker thread; close it if you stop early.

        Raises `DocumentRejected` with a reason for the owner of the document.
        """
        ...


class IndexQueue(Protocol):
    """Documents that wait to be indexed."""

    async def put(self, object_key: str, *, anew: bool) -> None:
        """Have it indexed; `anew` even if its content is unchanged. Raises `Unavailable`."""
        ...


class KnowledgeStore(Protocol):
    """Documents and chunks. Every method is atomic and sees one tenant only."""

    # Documents

    async def has_agent(self, tenant_id: str, agent_id: UUID) -> bool: ...

    async def add_document(self, tenant_id: str, document: NewDocument) -> Document | None:
        """The new document, or the one of that agent and file name, with its media type and category changed.

        None for an unknown agent.
        """
        ...

    async def get_document(self, tenant_id: str, agent_id: UUID, document_id: UUID) -> Document | None: ...

    async def list_documents(self, tenant_id: str, agent_id: UUID) -> list[Document]: ...

    async def delete_document(self, tenant_id: str, agent_id: UUID, document_id: UUID) -> bool:
        """Delete the document with its chunks; False when there is none."""
        ...

    # Indexing. What writes for a claim is False, and has written nothing, when the claim is no longer the newest.

    async def claim(self, tenant_id: str, object_key: str, sequencer: str | None) -> Claim | None:
        """Take the document over from any other attempt.

        None when no document of a living agent has this key, or an event with a later sequencer has been seen.
        """
        ...

    async def begin(self, claim: Claim, found: StoredObject, recipe: str) -> Staging | None:
        """Say that the document is being indexed; None when the claim is no longer the newest."""
        ...

    async def embedded(self, staging: Staging, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of the hashes whose vectors the document has already, staged or live."""
        ...

    async def stage(self, staging: Staging, chunks: Sequence[EmbeddedChunk]) -> bool:
        """Write chunks that readers do not see yet; those without a vector take it from an equal chunk."""
        ...

    async def publish(self, staging: Staging) -> bool:
        """Let readers see the staged chunks instead of those before, and drop all others."""
        ...

    async def reject(self, claim: Claim, content_hash: str | None, recipe: str, reason: str) -> bool:
        """Note why the document cannot be indexed and drop what was staged; what readers see stays."""
        ...

    async def postpone(self, claim: Claim, reason: str) -> bool:
        """Note why the attempt was interrupted; what was staged stays for the next."""
        ...

    async def withdraw(self, claim: Claim) -> bool:
        """Note that the object is gone, and drop every chunk."""
        ...

    async def announced(self, claim: Claim) -> None:
        """Note that the bus has taken the news of how the attempt ended."""
        ...


class KnowledgeSearch(Protocol):
    """Search among the live chunks of one tenant's agents."""

    async def search(
        self, tenant_id: str, agent_ids: Sequence[UUID], text: str, vector: Vector, mode: SearchMode, limit: int
    ) -> list[Hit]:
        """The best chunks, best first: by cosine, or by cosine and words together."""
        ...
