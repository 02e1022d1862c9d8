"""/agents/{id}/documents and /agents/{id}/knowledge."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from functions.api.request import Name, Text, caller
from octopus.cloud.wiring import services
from octopus.memory_config import Score
from octopus.semantic.library import AnnouncedDocument
from octopus.semantic.types import Document, Knowledge, ReindexJob
from octopus.text import storable

router = APIGatewayHttpRouter()

MediaType = Annotated[str, Field(max_length=200), AfterValidator(storable)]


class NewDocument(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file_name: Name
    media_type: MediaType | None = None
    category: Name | None = None
    size_bytes: int | None = Field(default=None, ge=1)


class KnowledgeSearch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: Text
    top_k: int = Field(default=5, ge=1, le=50)
    min_score: Score = 0.7


@router.post("/agents/<agent_id>/documents")
async def announce_document(agent_id: UUID, document: Annotated[NewDocument, Body()]) -> tuple[AnnouncedDocument, int]:
    return await services().knowledge_library.announce(caller(router), agent_id, **document.model_dump()), 201


@router.get("/agents/<agent_id>/documents")
async def list_documents(agent_id: UUID) -> list[Document]:
    return await services().knowledge_library.list(caller(router), agent_id)


@router.post("/agents/<agent_id>/documents/reindex-all")
async def reindex_all(agent_id: UUID) -> tuple[ReindexJob, int]:
    return await services().reindex_agent.start(caller(router), agent_id), 202


@router.get("/agents/<agent_id>/documents/reindex-all")
async def get_reindexing(agent_id: UUID) -> ReindexJob:
    return await services().reindex_agent.progress(caller(router), agent_id)


@router.get("/agents/<agent_id>/documents/<document_id>")
async def get_document(agent_id: UUID, document_id: UUID) -> Document:
    return await services().knowledge_library.get(caller(router), agent_id, document_id)


@router.delete("/agents/<agent_id>/documents/<document_id>")
async def delete_document(agent_id: UUID, document_id: UUID) -> tuple[None, int]:
    await services().knowledge_library.delete(caller(router), agent_id, document_id)
    return None, 204


@router.patch("/agents/<agent_id>/documents/<document_id>/reindex")
async def reindex_document(agent_id: UUID, document_id: UUID) -> tuple[Document, int]:
    return await services().knowledge_library.reindex(caller(router), agent_id, document_id), 202


@router.post("/agents/<agent_id>/knowledge/search")
async def search_knowledge(agent_id: UUID, search: Annotated[KnowledgeSearch, Body()]) -> Knowledge:
    return await services().knowledge_library.search(
        caller(router), agent_id, search.query, top_k=search.top_k, min_score=search.min_score
    )
