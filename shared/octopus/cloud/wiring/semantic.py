"""Memory 3."""

from __future__ import annotations

from functools import cached_property

from octopus.cloud.index_queue import SqsIndexQueue
from octopus.cloud.objects import S3Objects
from octopus.cloud.tokens import count_tokens
from octopus.cloud.wiring.outside import Outside, needed
from octopus.semantic.chunking import Chunker, share_of
from octopus.semantic.extract.limits import Limits
from octopus.semantic.extract.sandbox import SandboxedReader
from octopus.semantic.ingest import IngestDocument
from octopus.semantic.library import KnowledgeLibrary
from octopus.semantic.news import DocumentNews
from octopus.semantic.recall import KnowledgeRecall
from octopus.semantic.reindex import ReindexAgent, ReindexLane
from octopus.semantic.remove import RemoveDocument
from octopus.semantic.search_store import PostgresKnowledgeSearch
from octopus.semantic.store import PostgresKnowledgeStore


class Semantic(Outside):
    """Semantic memory: recall, library, ingestion."""

    @cached_property
    def knowledge_store(self) -> PostgresKnowledgeStore:
        return PostgresKnowledgeStore(self.database, self.space)

    @cached_property
    def knowledge(self) -> KnowledgeRecall:
        return KnowledgeRecall(PostgresKnowledgeSearch(self.database, self.space), self.embedder.calibration)

    @cached_property
    def knowledge_library(self) -> KnowledgeLibrary:
        return KnowledgeLibrary(
            self.knowledge_store,
            self.objects,
            self.index_queue,
            self.knowledge,
            self.query_embedder,
            max_bytes=self.settings.upload_max_bytes,
        )

    @cached_property
    def document_reader(self) -> SandboxedReader:
        return SandboxedReader(Limits(pages=self.settings.document_max_pages), self.settings.library_path)

    @cached_property
    def ingest_document(self) -> IngestDocument:
        size, overlap = self.settings.chunk_tokens, self.settings.chunk_overlap_tokens
        share = share_of(size, count_tokens, self.embedder)
        return IngestDocument(
            self.knowledge_store,
            self.objects,
            self.document_reader,
            Chunker(share, overlap / size, self.settings.chunk_strategy),
            self.embedder,
            self.index_queue,
            self.document_news,
            count_tokens,
            cutting=f"{self.settings.chunk_strategy} {size}/{overlap}",
            max_bytes=self.settings.upload_max_bytes,
        )

    @cached_property
    def remove_document(self) -> RemoveDocument:
        return RemoveDocument(self.knowledge_store, self.objects, self.document_news)

    @cached_property
    def reindex_agent(self) -> ReindexAgent:
        return ReindexAgent(self.knowledge_store, self.index_queue)

    @cached_property
    def reindex_lane(self) -> ReindexLane:
        return ReindexLane(self.knowledge_store, self.index_queue, self.ingest_document)

    @cached_property
    def document_news(self) -> DocumentNews:
        return DocumentNews(self.bus, self.knowledge_store)

    @cached_property
    def index_queue(self) -> SqsIndexQueue:
        return SqsIndexQueue(needed(self.settings.ingest_queue_url, "OCTOPUS_INGEST_QUEUE_URL"))

    @cached_property
    def objects(self) -> S3Objects:
        return S3Objects(needed(self.settings.bucket, "OCTOPUS_BUCKET"))
