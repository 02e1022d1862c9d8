"""What the API offers of knowledge: documents for administrators, and a search that shows its scores."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

from octopus.embedding import Embedder
from octopus.errors import BodyTooLarge, InvalidInput, NotFound
from octopus.identity import Principal, Role
from octopus.recall import Query
from octopus.relevance import Vector
from octopus.semantic.media import MEDIA_TYPES, media_type_of
from octopus.semantic.object_key import object_key
from octopus.semantic.ports import IndexQueue, KnowledgeStore, Objects
from octopus.semantic.recall import KnowledgeRecall
from octopus.semantic.types import Document, Knowledge, NewDocument, Upload


@dataclass(frozen=True, slots=True)
class AnnouncedDocument:
    """A document and the form that takes its file."""

    document: Document
    upload: Upload


class KnowledgeLibrary:
    """The documents of the agents of the caller's tenant; for administrators."""

    def __init__(
        self,
        store: KnowledgeStore,
        objects: Objects,
        queue: IndexQueue,
        recall: KnowledgeRecall,
        embedder: Embedder,
        *,
        max_bytes: int,
    ) -> None:
        self._store = store
        self._objects = objects
        self._queue = queue
        self._recall = recall
        self._embedder = embedder
        self._max_bytes = max_bytes

    async def announce(
        self,
        caller: Principal,
        agent_id: UUID,
        *,
        file_name: str,
        media_type: str | None = None,
        category: str | None = None,
        size_bytes: int | None = None,
    ) -> AnnouncedDocument:
        """A document and a form to upload it with. The name of a document that exists takes its next version.

        Raises `Forbidden`, `NotFound`, `InvalidInput` for a type that cannot be read, `BodyTooLarge`.
        """
        caller.require(Role.ADMIN)
        read_as = media_type_of(file_name, media_type)
        if read_as is None:
            endings = ", ".join(MEDIA_TYPES)
            raise InvalidInput(
                f"file_name: files of this kind cannot be read; use one of {endings}.", field="file_name"
            )
        if size_bytes is not None and size_bytes > self._max_bytes:
            raise BodyTooLarge(f"size_bytes: the limit is {self._max_bytes} bytes.", field="size_bytes")
        document_id = uuid4()
        key = object_key(caller.tenant_id, agent_id, document_id, file_name)
        new = NewDocument(document_id, agent_id, file_name, key, read_as, category, size_bytes, caller.user_id)
        document = await self._store.add_document(caller.tenant_id, new)
        if document is None:
            raise NotFound(f"There is no agent {agent_id}.")
        upload = await self._objects.upload_form(document.object_key, read_as, self._max_bytes)
        return AnnouncedDocument(document, upload)

    async def list(self, caller: Principal, agent_id: UUID) -> list[Document]:
        await self._check(caller, agent_id)
        return await self._store.list_documents(caller.tenant_id, agent_id)

    async def get(self, caller: Principal, agent_id: UUID, document_id: UUID) -> Document:
        caller.require(Role.ADMIN)
        document = await self._store.get_document(caller.tenant_id, agent_id, document_id)
        if document is None:
            raise NotFound(f"The agent has no document {document_id}.")
        return document

    async def delete(self, caller: Principal, agent_id: UUID, document_id: UUID) -> None:
        """Delete the object first: if what follows fails, the same request can be sent again."""
        document = await self.get(caller, agent_id, document_id)
        await self._objects.delete(document.object_key)
        await self._store.delete_document(caller.tenant_id, agent_id, document_id)

    async def reindex(self, caller: Principal, agent_id: UUID, document_id: UUID) -> Document:
        """Have the document read, cut and embedded anew; also the way to retry a failed one."""
        document = await self.get(caller, agent_id, document_id)
        await self._queue.put(document.object_key, anew=True)
        return document

    async def search(self, caller: Principal, agent_id: UUID, text: str, *, top_k: int, min_score: float) -> Knowledge:
        """What would be recalled of the agent's own documents for the text, with scores and near misses."""
        await self._check(caller, agent_id)
        query = Query(text, self._vector(text))
        return await self._recall.search(caller.tenant_id, [agent_id], query, top_k, min_score)

    async def _check(self, caller: Principal, agent_id: UUID) -> None:
        caller.require(Role.ADMIN)
        if not await self._store.has_agent(caller.tenant_id, agent_id):
            raise NotFound(f"There is no agent {agent_id}.")

    async def _vector(self, text: str) -> Vector:
        (vector,) = await self._embedder.embed([text])
        return vector
