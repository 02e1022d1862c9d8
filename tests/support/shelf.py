"""Semantic memory on real PostgreSQL and moto, with the handles that tests need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import boto3

from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.index_queue import SqsIndexQueue
from octopus.cloud.objects import S3Objects
from octopus.cloud.tokens import count_tokens
from octopus.embedding import Embedder
from octopus.memory_config import MemoryConfig
from octopus.recall import Query, Scope
from octopus.relevance import Vector
from octopus.semantic.chunking import Chunker, share_of
from octopus.semantic.extract.limits import Limits
from octopus.semantic.extract.sandbox import SandboxedReader
from octopus.semantic.ingest import IngestDocument
from octopus.semantic.media import media_type_of
from octopus.semantic.news import DocumentNews
from octopus.semantic.object_key import object_key
from octopus.semantic.recall import KnowledgeRecall
from octopus.semantic.remove import RemoveDocument
from octopus.semantic.search_store import PostgresKnowledgeSearch
from octopus.semantic.store import PostgresKnowledgeStore
from octopus.semantic.types import Document, Knowledge, NewDocument

TENANT = "acme"


@dataclass
class RecordingBus:
    """Implements `octopus.events.EventBus`."""

    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        self.events.append((detail_type, detail))


class Shelf:
    """One agent's documents. Make it where AWS_ENDPOINT_URL points to moto, and close it."""

    def __init__(
        self, database: Database, embedder: Embedder, agent_id: UUID, *, limits: Limits | None = None, size: int = 512
    ) -> None:
        self.agent_id = agent_id
        self.embedder = embedder
        self.bucket = f"b-{uuid4().hex}"
        self.s3: Any = boto3.client("s3")
        self.s3.create_bucket(Bucket=self.bucket)
        self.sqs: Any = boto3.client("sqs")
        self.queue_url: str = self.sqs.create_queue(QueueName=self.bucket)["QueueUrl"]
        space = EmbeddingSpace(database, embedder)
        self.store = PostgresKnowledgeStore(database, space)
        self.search = PostgresKnowledgeSearch(database, space)
        self.objects = S3Objects(self.bucket)
        self.bus = RecordingBus()
        self.reader = SandboxedReader(limits or Limits())
        news = DocumentNews(self.bus, self.store)
        self.ingest_document = IngestDocument(
            self.store,
            self.objects,
            self.reader,
            Chunker(share_of(size, count_tokens, embedder), 64 / 512),
            embedder,
            SqsIndexQueue(self.queue_url),
            news,
            count_tokens,
            cutting=str(size),
            max_bytes=60_000_000,
        )
        self.remove_document = RemoveDocument(self.store, self.objects, news)

    def close(self) -> None:
        self.reader.close()

    async def announce(self, name: str) -> Document:
        document_id = uuid4()
        key = object_key(TENANT, self.agent_id, document_id, name)
        media_type = media_type_of(name)
        assert media_type
        new = NewDocument(document_id, self.agent_id, name, key, media_type, None, None, "ada")
        document = await self.store.add_document(TENANT, new)
        assert document
        return document

    def put(self, document: Document, content: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=document.object_key, Body=content)

    async def add(self, name: str, content: bytes) -> Document:
        """Announce, put and ingest."""
        document = await self.announce(name)
        self.put(document, content)
        await self.ingest_document.ingest(document.object_key)
        return await self.look_at(document)

    async def look_at(self, document: Document) -> Document:
        found = await self.store.get_document(TENANT, self.agent_id, document.document_id)
        assert found
        return found

    async def recall(
        self, text: str, *, min_score: float = 0.5, scope: Scope | None = None, config: MemoryConfig | None = None
    ) -> Knowledge:
        async def vector() -> Vector:
            return (await self.embedder.embed([text]))[0]

        config = config or MemoryConfig(semantic_min_score=min_score, semantic_top_k=1)
        recall = KnowledgeRecall(self.search, self.embedder.calibration)
        return await recall.recall(scope or Scope(TENANT, "ada", self.agent_id), Query(text, vector()), config)

    def messages(self) -> list[str]:
        """Bodies of what waits in the queue; they are taken off."""
        found = self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10).get("Messages", [])
        for message in found:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in found]
