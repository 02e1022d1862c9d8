"""A document from the bucket to recall, on real PostgreSQL and moto's S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import boto3
import httpx2
import pytest
from moto.server import ThreadedMotoServer

from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.objects import S3Objects
from octopus.cloud.tokens import count_tokens
from octopus.memory_config import MemoryConfig
from octopus.recall import Query, Scope
from octopus.relevance import Vector
from octopus.semantic.chunking import Chunker, share_of
from octopus.semantic.extract.limits import Limits
from octopus.semantic.extract.sandbox import SandboxedReader
from octopus.semantic.ingest import IngestDocument
from octopus.semantic.object_key import object_key
from octopus.semantic.recall import KnowledgeRecall
from octopus.semantic.remove import RemoveDocument
from octopus.semantic.store import PostgresKnowledgeStore
from octopus.semantic.types import Document, Knowledge, NewDocument
from tests.support.embedder import WordEmbedder

BUCKET = "octopus-documents"
GUIDE = """# Refunds

Refunds are granted within thirty days of purchase.

## Exceptions

Opened software licences are never refunded.
"""


@pytest.fixture(scope="session")
def aws() -> Iterator[str]:
    """moto's server; its address."""
    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def objects(aws: str, monkeypatch: pytest.MonkeyPatch) -> S3Objects:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws)
    bucket = f"{BUCKET}-{uuid4().hex}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    return S3Objects(bucket)


@pytest.fixture
def store(database: Database, space: EmbeddingSpace) -> PostgresKnowledgeStore:
    return PostgresKnowledgeStore(database, space)


@pytest.fixture
def reader() -> Iterator[SandboxedReader]:
    reader = SandboxedReader(Limits())
    yield reader
    reader.close()


@pytest.fixture
def ingest(
    store: PostgresKnowledgeStore, objects: S3Objects, reader: SandboxedReader, embedder: WordEmbedder
) -> IngestDocument:
    chunker = Chunker(share_of(512, count_tokens, embedder), 64 / 512)
    return IngestDocument(store, objects, reader, chunker, embedder, count_tokens, max_bytes=1_000_000)


async def announce(store: PostgresKnowledgeStore, agent: Agent, name: str, media_type: str) -> Document:
    document_id = uuid4()
    key = object_key("acme", agent.agent_id, document_id, name)
    new = NewDocument(document_id, agent.agent_id, name, key, media_type, None, None, "ada")
    document = await store.add_document("acme", new)
    assert document
    return document


def put(objects: S3Objects, document: Document, content: bytes) -> None:
    boto3.client("s3").put_object(Bucket=objects._bucket, Key=document.object_key, Body=content)


async def recall(
    store: PostgresKnowledgeStore, embedder: WordEmbedder, scope: Scope, text: str, min_score: float = 0.5
) -> Knowledge:
    async def vector() -> Vector:
        return (await embedder.embed([text]))[0]

    config = MemoryConfig(semantic_min_score=min_score, semantic_top_k=1)
    return await KnowledgeRecall(store, embedder.calibration).recall(scope, Query(text, vector()), config)


async def test_a_document_is_recalled_with_its_heading(
    ingest: IngestDocument,
    store: PostgresKnowledgeStore,
    objects: S3Objects,
    embedder: WordEmbedder,
    agent: Agent,
    scope: Scope,
) -> None:
    document = await announce(store, agent, "guide.md", "text/markdown")
    put(objects, document, GUIDE.encode())

    assert await ingest.ingest(document.object_key) == "indexed"

    found = await recall(store, embedder, scope, "are opened software licences refunded")
    assert [(c.source, c.content) for c in found.chunks] == [
        ("guide.md (Refunds > Exceptions)", "Opened software licences are never refunded.")
    ]
    assert [c.heading for c in found.near_misses] == ["Refunds"]
    indexed = await store.get_document("acme", agent.agent_id, document.document_id)
    assert indexed
    assert (indexed.status, indexed.chunk_count, indexed.size_bytes) == ("indexed", 2, len(GUIDE))


async def test_another_tenant_or_agent_recalls_nothing(
    ingest: IngestDocument,
    store: PostgresKnowledgeStore,
    objects: S3Objects,
    embedder: WordEmbedder,
    agent: Agent,
    scope: Scope,
) -> None:
    document = await announce(store, agent, "guide.md", "text/markdown")
    put(objects, document, GUIDE.encode())
    await ingest.ingest(document.object_key)
    for other in (Scope("other", "ada", agent.agent_id), Scope("acme", "ada", uuid4())):
        found = await recall(store, embedder, other, "refunds", min_score=0.0)
        assert (found.chunks, found.near_misses) == ([], [])


async def test_unchanged_content_costs_nothing_and_a_change_costs_its_chunk(
    ingest: IngestDocument,
    store: PostgresKnowledgeStore,
    objects: S3Objects,
    embedder: WordEmbedder,
    agent: Agent,
    scope: Scope,
) -> None:
    document = await announce(store, agent, "guide.md", "text/markdown")
    put(objects, document, GUIDE.encode())
    await ingest.ingest(document.object_key)
    embedder.texts.clear()

    assert await ingest.ingest(document.object_key) == "unchanged"
    assert embedder.texts == []

    put(objects, document, GUIDE.replace("never", "rarely").encode())
    assert await ingest.ingest(document.object_key) == "indexed"
    assert embedder.texts == ["Refunds > Exceptions\nOpened software licences are rarely refunded."]
    found = await recall(store, embedder, scope, "opened software licences")
    assert found.chunks[0].content == "Opened software licences are rarely refunded."


@pytest.mark.parametrize("key", ["acme/x/y/z.md", "nobody/a/b/c", "", "/", "a/b", "a%/b/c/d", "../../../x"])
async def test_a_key_of_no_document_is_refused(ingest: IngestDocument, key: str) -> None:
    assert await ingest.ingest(key) == "refused"


async def test_an_older_event_is_refused(
    ingest: IngestDocument, store: PostgresKnowledgeStore, objects: S3Objects, agent: Agent
) -> None:
    document = await announce(store, agent, "guide.md", "text/markdown")
    put(objects, document, GUIDE.encode())
    assert await ingest.ingest(document.object_key, "0b") == "indexed"
    assert await ingest.ingest(document.object_key, "0a") == "refused"
    assert await ingest.ingest(document.object_key, "0b") == "unchanged"


async def test_a_broken_file_fails_with_a_reason_and_leaves_what_was_there(
    ingest: IngestDocument,
    store: PostgresKnowledgeStore,
    objects: S3Objects,
    embedder: WordEmbedder,
    agent: Agent,
    scope: Scope,
) -> None:
    document = await announce(store, agent, "guide.md", "text/markdown")
    put(objects, document, GUIDE.encode())
    await ingest.ingest(document.object_key)
    put(objects, document, b"   ")

    assert await ingest.ingest(document.object_key) == "failed"

    failed = await store.get_document("acme", agent.agent_id, document.document_id)
    assert failed
    assert (failed.status, failed.failure_reason) == ("failed", "The document has no text.")
    assert (await recall(store, embedder, scope, "opened software licences")).chunks


async def test_removal_forgets_unless_the_object_is_there(
    ingest: IngestDocument,
    store: PostgresKnowledgeStore,
    objects: S3Objects,
    embedder: WordEmbedder,
    agent: Agent,
    scope: Scope,
) -> None:
    remove = RemoveDocument(store, objects)
    document = await announce(store, agent, "guide.md", "text/markdown")
    put(objects, document, GUIDE.encode())
    await ingest.ingest(document.object_key)
    assert await remove.remove(document.object_key) == "kept"

    await objects.delete(document.object_key)
    assert await remove.remove(document.object_key) == "removed"

    found = await recall(store, embedder, scope, "refunds", min_score=0.0)
    assert (found.chunks, found.near_misses) == ([], [])
    assert await store.list_documents("acme", agent.agent_id) == []


async def test_the_upload_form_puts_the_object(objects: S3Objects, tmp_path: Path) -> None:
    form = await objects.upload_form("acme/a/d/x.md", "text/markdown", max_bytes=100)
    async with httpx2.AsyncClient() as client:
        posted = await client.post(form.url, data=dict(form.fields), files={"file": b"Hello"})
    assert posted.is_success

    found = await objects.download("acme/a/d/x.md", tmp_path / "x", max_bytes=100)
    assert found
    assert found.size_bytes == 5
    assert (tmp_path / "x").read_bytes() == b"Hello"
    assert await objects.download("acme/a/d/none.md", tmp_path / "x", max_bytes=100) is None
