"""A document from the bucket to recall, on real PostgreSQL and moto's S3."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from octopus.agents.store import PostgresAgentStore
from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.errors import Unavailable
from octopus.recall import Scope
from octopus.relevance import Vector
from octopus.semantic.ingest import Superseded
from tests.support.aws import moto_server
from tests.support.embedder import WordEmbedder
from tests.support.shelf import Shelf

GUIDE = b"""# Refunds

Refunds are granted within thirty days of purchase.

## Exceptions

Opened software licences are never refunded.
"""
LONG = "\n\n".join(f"# Part {i}\n\nThis part says {i} times {i}." for i in range(150)).encode()


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture
def shelf(
    aws: str, database: Database, embedder: WordEmbedder, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shelf]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws)
    shelf = Shelf(database, embedder, agent.agent_id)
    yield shelf
    shelf.close()


class Failing(WordEmbedder):
    """Answers a number of times and then no more."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.answers = answers

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if not self.answers:
            raise Unavailable("The embedding model does not answer.")
        self.answers -= 1
        return await super().embed(texts)


async def test_a_document_is_recalled_with_its_heading(shelf: Shelf) -> None:
    document = await shelf.add("guide.md", GUIDE)

    found = await shelf.recall("are opened software licences refunded")
    assert [(c.source, c.content) for c in found.chunks] == [
        ("guide.md (Refunds > Exceptions)", "Opened software licences are never refunded.")
    ]
    assert [c.heading for c in found.near_misses] == ["Refunds"]
    assert (document.status, document.chunk_count, document.size_bytes) == ("indexed", 2, len(GUIDE))
    ids = {"document_id": str(document.document_id), "agent_id": str(shelf.agent_id), "tenant_id": "acme"}
    assert shelf.bus.events == [("DocumentIndexed", ids)]


async def test_another_tenant_or_agent_recalls_nothing(shelf: Shelf) -> None:
    await shelf.add("guide.md", GUIDE)
    for other in (Scope("other", "ada", shelf.agent_id), Scope("acme", "ada", uuid4())):
        found = await shelf.recall("refunds", min_score=0.0, scope=other)
        assert (found.chunks, found.near_misses) == ([], [])


async def test_an_agent_recalls_what_another_shares_within_the_tenant(shelf: Shelf, database: Database) -> None:
    await shelf.add("guide.md", GUIDE)
    shared = {"semantic_shared_agents": [str(shelf.agent_id).upper()], "semantic_min_score": 0.5}
    for tenant, count in (("acme", 1), ("other", 0)):
        reader = await PostgresAgentStore(database).create_agent(tenant, "reader", "", "You read.", None, shared)
        assert reader.memory_config.semantic_shared_agents == (str(shelf.agent_id),)
        scope = Scope(tenant, "ada", reader.agent_id)
        found = await shelf.recall("opened software licences", scope=scope, config=reader.memory_config)
        assert len(found.chunks) == count


async def test_unchanged_content_costs_nothing_and_a_change_costs_its_chunk(
    shelf: Shelf, embedder: WordEmbedder
) -> None:
    document = await shelf.add("guide.md", GUIDE)
    embedder.texts.clear()

    assert await shelf.ingest_document.ingest(document.object_key) == "unchanged"
    assert embedder.texts == []

    shelf.put(document, GUIDE.replace(b"never", b"rarely"))
    assert await shelf.ingest_document.ingest(document.object_key) == "indexed"
    assert embedder.texts == ["Refunds > Exceptions\nOpened software licences are rarely refunded."]
    found = await shelf.recall("opened software licences")
    assert found.chunks[0].content == "Opened software licences are rarely refunded."


@pytest.mark.parametrize(
    "key",
    ["acme/x/y/z.md", "nobody/a/b/c", "", "/", "a/b", "a%/b/c/d", "../../../x", "%ff/b/c/d"],
)
async def test_a_key_of_no_document_is_refused(shelf: Shelf, key: str) -> None:
    assert await shelf.ingest_document.ingest(key) == "refused"
    assert await shelf.remove_document.remove(key) == "refused"


async def test_documents_of_a_deleted_agent_are_refused(shelf: Shelf, database: Database) -> None:
    document = await shelf.announce("guide.md")
    shelf.put(document, GUIDE)
    await PostgresAgentStore(database).delete_agent("acme", shelf.agent_id)
    assert await shelf.ingest_document.ingest(document.object_key) == "refused"


async def test_an_older_event_is_refused(shelf: Shelf) -> None:
    document = await shelf.announce("guide.md")
    shelf.put(document, GUIDE)
    assert await shelf.ingest_document.ingest(document.object_key, "0b") == "indexed"
    assert await shelf.ingest_document.ingest(document.object_key, "0a") == "refused"
    assert await shelf.ingest_document.ingest(document.object_key, "0b") == "unchanged"


async def test_a_broken_file_fails_with_a_reason_and_leaves_what_was_there(shelf: Shelf) -> None:
    document = await shelf.add("guide.md", GUIDE)
    shelf.put(document, b"   ")

    assert await shelf.ingest_document.ingest(document.object_key) == "failed"

    failed = await shelf.look_at(document)
    assert (failed.status, failed.failure_reason) == ("failed", "The document has no text.")
    assert (await shelf.recall("opened software licences")).chunks
    assert [news for news, _ in shelf.bus.events] == ["DocumentIndexed", "DocumentFailed"]
    assert await shelf.ingest_document.ingest(document.object_key) == "unchanged"


async def test_removal_forgets_unless_the_object_is_there(shelf: Shelf) -> None:
    document = await shelf.add("guide.md", GUIDE)
    assert await shelf.remove_document.remove(document.object_key) == "kept"

    await shelf.objects.delete(document.object_key)
    assert await shelf.remove_document.remove(document.object_key) == "removed"

    found = await shelf.recall("refunds", min_score=0.0)
    assert (found.chunks, found.near_misses) == ([], [])
    assert (await shelf.look_at(document)).status == "deleted"
    assert await shelf.store.list_documents("acme", shelf.agent_id) == []
    assert shelf.bus.events[-1][0] == "DocumentDeleted"

    shelf.put(document, GUIDE)  # it comes back with its object
    assert await shelf.ingest_document.ingest(document.object_key) == "indexed"


async def test_an_attempt_that_fails_for_the_embedder_goes_on_where_it_stopped(
    shelf: Shelf, database: Database
) -> None:
    document = await shelf.announce("long.md")
    shelf.put(document, LONG)
    failing = Failing(answers=1)
    shelf.ingest_document._embedder = failing
    with pytest.raises(Unavailable):
        await shelf.ingest_document.ingest(document.object_key)
    pending = await shelf.look_at(document)
    assert (pending.status, pending.chunk_count) == ("pending", 0)
    assert "embedding model does not answer" in str(pending.failure_reason)
    assert (await shelf.recall("this part says", min_score=0.0)).near_misses == []

    failing.answers = 100
    assert await shelf.ingest_document.ingest(document.object_key) == "indexed"
    assert len(failing.texts) == len(set(failing.texts)) == 150
    assert (await shelf.look_at(document)).chunk_count == 150


async def test_an_attempt_that_is_out_of_time_leaves_the_rest_to_another_message(
    shelf: Shelf, embedder: WordEmbedder
) -> None:
    document = await shelf.announce("long.md")
    shelf.put(document, LONG)
    ingest = shelf.ingest_document.ingest
    assert await ingest(document.object_key, until=time.monotonic() - 1) == "unfinished"
    assert [json.loads(body) for body in shelf.messages()] == [{"ingest": document.object_key, "anew": False}]
    assert (await shelf.look_at(document)).status == "indexing"
    assert await ingest(document.object_key) == "indexed"
    assert len(embedder.texts) == 150


async def test_an_attempt_that_was_overtaken_writes_nothing(shelf: Shelf) -> None:
    document = await shelf.announce("long.md")
    shelf.put(document, LONG)

    class Overtaken(WordEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            shelf.ingest_document._embedder = shelf.embedder
            shelf.put(document, GUIDE)
            assert await shelf.ingest_document.ingest(document.object_key) == "indexed"
            return await super().embed(texts)

    shelf.ingest_document._embedder = Overtaken()
    with pytest.raises(Superseded):
        await shelf.ingest_document.ingest(document.object_key)
    now = await shelf.look_at(document)
    assert (now.status, now.chunk_count) == ("indexed", 2)
    assert await shelf.ingest_document.ingest(document.object_key) == "unchanged"


async def test_news_that_the_bus_did_not_take_are_told_by_the_next_attempt(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deaf(*_: object) -> None:
        raise Unavailable("The bus does not answer.")

    document = await shelf.announce("guide.md")
    shelf.put(document, GUIDE)
    with monkeypatch.context() as patched:
        patched.setattr(shelf.bus, "publish", deaf)
        with pytest.raises(Unavailable):
            await shelf.ingest_document.ingest(document.object_key)
    assert (await shelf.look_at(document)).status == "indexed"
    for _ in range(2):
        assert await shelf.ingest_document.ingest(document.object_key) == "unchanged"
    assert [news for news, _ in shelf.bus.events] == ["DocumentIndexed"]


async def test_the_upload_form_puts_the_object(shelf: Shelf, tmp_path: Path) -> None:
    form = await shelf.objects.upload_form("acme/a/d/x.md", "text/markdown", max_bytes=100)
    async with httpx2.AsyncClient() as client:
        posted = await client.post(form.url, data=dict(form.fields), files={"file": b"Hello"})
    assert posted.is_success

    found = await shelf.objects.download("acme/a/d/x.md", tmp_path / "x", max_bytes=100)
    assert found
    assert found.size_bytes == 5
    assert (tmp_path / "x").read_bytes() == b"Hello"
    assert await shelf.objects.download("acme/a/d/none.md", tmp_path / "x", max_bytes=100) is None
