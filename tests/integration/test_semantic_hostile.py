"""A hundred hostile files: each fails with a reason or is indexed, and no other document waits for it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence

import pytest

from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.relevance import Vector
from octopus.semantic.extract.limits import Limits
from tests.support.aws import moto_server
from tests.support.embedder import WordEmbedder
from tests.support.hostile import hostile_files
from tests.support.shelf import Shelf

LIMITS = Limits(pages=2_000, seconds=5, memory_bytes=768 * 1024 * 1024)
SLOWEST_S = 60  # with two cores that others use as well; most take milliseconds


class BlindEmbedder(WordEmbedder):
    """Gives every text the same vector: embedding is not what is tested here."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [[1.0] + [0.0] * (self.dimensions - 1)] * len(texts)


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture
def shelf(aws: str, database: Database, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws)
    shelf = Shelf(database, BlindEmbedder(), agent.agent_id, limits=LIMITS)
    yield shelf
    shelf.close()


async def test_hostile_files_fail_alone(shelf: Shelf) -> None:
    files = list(hostile_files())
    assert len(files) >= 100
    outcomes: dict[str, tuple[str, str | None]] = {}
    took: dict[str, float] = {}
    for name, content in files:
        started = time.monotonic()
        document = await shelf.add(name, content)
        took[name] = time.monotonic() - started
        outcomes[name] = (document.status, document.failure_reason)
        print(f"{took[name]:6.2f} s  {name:28} {document.status:8} {document.failure_reason or ''}")

    assert {status for status, _ in outcomes.values()} == {"indexed", "failed"}
    assert all(reason for status, reason in outcomes.values() if status == "failed")
    assert max(took.values()) < SLOWEST_S
    reasons = {
        "empty.pdf": "empty",
        "encrypted.pdf": "encrypted",
        "password.docx": "encrypted",
        "million-pages.pdf": "1000000 pages",
        "scan.pdf": "scan",
        "bomb.docx": "ZIP bomb",
        "bomb-in-unused-part.docx": "ZIP bomb",
        "image.md": "PNG",
        "archive.docx": "ZIP archive",
        "cut-5.docx": "damaged",
    }
    for name, reason in reasons.items():
        assert re.search(reason, str(outcomes[name][1])), (name, outcomes[name])
    for name in ("pdf-named.docx", "docx-named.pdf", "mixed-encodings.txt", "looping-bookmarks.pdf"):
        assert outcomes[name][0] == "indexed", outcomes[name]

    rows = await shelf.store._database.all("acme", "select content from chunks")
    contents = " ".join(row["content"] for row in rows)
    assert "root:" not in contents  # of /etc/passwd
    assert "lollollol" not in contents
    good = await shelf.add("good.md", b"# Refunds\n\nWithin thirty days.")
    assert good.status == "indexed"


async def test_a_document_does_not_wait_for_a_slow_one(shelf: Shelf) -> None:
    """Workers of their own on AWS; here even one process keeps answering."""
    slow = await shelf.announce("slow.html")
    shelf.put(slow, b"<b>x" * 12_000_000)
    running = asyncio.create_task(shelf.ingest_document.ingest(slow.object_key))
    await asyncio.sleep(0.5)
    good = await shelf.add("good.md", b"# Refunds\n\nWithin thirty days.")
    assert good.status == "indexed"
    assert not running.done()
    assert await running == "failed"
    assert "too long" in str((await shelf.look_at(slow)).failure_reason)


@pytest.mark.parametrize(
    "key",
    [
        "acme/../other/{agent}/{document}/a.md",
        "acme//{agent}/{document}/a.md",
        "acme/{agent}/{document}/../../../secret",
        "acme/{agent}/{document}",
        "acme/{agent}/{document}/a.md/b",
        "acme%2F..%2Fother/{agent}/{document}/a.md",
        "other/{agent}/{document}/a.md",
        "acme/{document}/{agent}/a.md",
        "ACME/{agent}/{document}/a.md",
        "acme/{agent}/{document}/a.md ",
        "acme/{agent}/{document}/%00a.md",
        "acme\x00/{agent}/{document}/a.md",
        "acme/{agent}/{document}/a.md\n",
        "a" * 1024,
        "' or 1=1 --/{agent}/{document}/a.md",
    ],
)
async def test_tricks_with_the_key_are_refused(shelf: Shelf, key: str) -> None:
    document = await shelf.announce("a.md")
    tricked = key.format(agent=shelf.agent_id, document=document.document_id)
    if tricked.isprintable():
        shelf.s3.put_object(Bucket=shelf.bucket, Key=tricked, Body=b"tricked")
    assert await shelf.ingest_document.ingest(tricked) == "refused"
    assert await shelf.remove_document.remove(tricked) in ("refused", "kept")
    assert (await shelf.look_at(document)).status == "pending"
