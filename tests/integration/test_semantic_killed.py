"""Ingestion is killed at ten random points of a document of 500 chunks; the queue delivers again.

In the end everything is as after an undisturbed run, no text was embedded twice, and no reader ever saw a mixture.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.semantic.types import Document
from tests.conftest import DatabaseUrls
from tests.support.aws import moto_server
from tests.support.embedder import WordEmbedder
from tests.support.shelf import TENANT, Shelf

CHUNKS = 500
ROOT = Path(__file__).parents[2]


def version(number: int) -> bytes:
    """A document of 500 sections, each of which names the version; a tenth of them is common to all versions."""
    names = ("common" if i % 10 == 0 else f"version{number}" for i in range(CHUNKS))
    return "\n".join(f"# Section {i}\n\nsection {i} of {name} says {i * 7}\n" for i, name in enumerate(names)).encode()


@pytest.fixture
def shelf(database: Database, embedder: WordEmbedder, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    with moto_server() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        shelf = Shelf(database, embedder, agent.agent_id)
        yield shelf
        shelf.close()


class Worker:
    """Ingests in a process of its own."""

    def __init__(self, shelf: Shelf, urls: DatabaseUrls, log: Path) -> None:
        self.log = log
        self._environment = os.environ | {
            "PYTHONPATH": f"{ROOT}:{ROOT / 'shared'}",
            "OCTOPUS_DATABASE_URL": urls.app,
            "OCTOPUS_BUCKET": shelf.bucket,
            "OCTOPUS_INGEST_QUEUE_URL": shelf.queue_url,
            "OCTOPUS_EVENT_BUS": "default",
            "EMBEDDED_LOG": str(log),
        }

    async def run(self, document: Document, kill_after: int | None = None) -> str:
        """What the ingestion says; nothing if it is killed, once so many texts more have been embedded."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.ingest_worker", document.object_key),
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
        )
        if kill_after is not None:
            enough = len(self.embedded()) + kill_after
            while len(self.embedded()) < enough and process.returncode is None:
                await asyncio.sleep(0.005)
            await asyncio.sleep(random.Random(kill_after).uniform(0, 0.1))
            if process.returncode is None:
                process.kill()
        out, _ = await process.communicate()
        return out.decode().strip()

    def embedded(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


async def watch(shelf: Shelf, seen: list[set[str]]) -> None:
    """What a reader finds, over and over: which versions of the document are visible at once."""
    vector = (await WordEmbedder().embed(["section of says"]))[0]
    while True:
        hits = await shelf.search.search(TENANT, [shelf.agent_id], "", vector, "vector", 2 * CHUNKS)
        seen.append({hit.content.split()[3] for hit in hits} - {"common"})
        assert len(hits) in (0, CHUNKS)
        await asyncio.sleep(0.02)


async def live_rows(database: Database, document: Document) -> list[tuple[object, ...]]:
    query = (
        "select ordinal, content, heading, page, token_count, content_hash, embedding::text from chunks "
        "where document_id = %(document_id)s order by generation, ordinal"
    )
    rows = await database.all(TENANT, query, {"document_id": document.document_id})
    return [tuple(row.values()) for row in rows]


async def test_ingestion_survives_being_killed(
    shelf: Shelf, database: Database, database_urls: DatabaseUrls, tmp_path: Path
) -> None:
    disturbed, undisturbed = await shelf.announce("disturbed.md"), await shelf.announce("undisturbed.md")
    worker = Worker(shelf, database_urls, tmp_path / "embedded.log")
    shelf.put(disturbed, version(1))
    assert await worker.run(disturbed) == "indexed"
    assert len(worker.embedded()) == CHUNKS
    worker.log.unlink()

    shelf.put(disturbed, version(2))
    seen: list[set[str]] = []
    watching = asyncio.create_task(watch(shelf, seen))
    points = sorted(random.Random(2026).sample(range(1, 450), 10))
    kills = 0
    for so_far, point in zip([0, *points], points, strict=False):
        kills += await worker.run(disturbed, kill_after=point - so_far) == ""
        assert not watching.done(), watching.exception()
    assert await worker.run(disturbed) in ("indexed", "unchanged")
    await asyncio.sleep(0.1)
    assert not watching.done(), watching.exception()
    watching.cancel()

    assert kills >= 9  # on a busy machine the worker may be quicker than the last kill
    assert {frozenset(versions) for versions in seen} == {frozenset({"version1"}), frozenset({"version2"})}
    texts = worker.embedded()
    under_way = 2 * 64  # what was being embedded and what was being written is paid for again
    assert CHUNKS * 9 // 10 <= len(texts) <= CHUNKS * 9 // 10 + kills * under_way
    shelf.put(undisturbed, version(2))
    assert await worker.run(undisturbed) == "indexed"
    assert await live_rows(database, disturbed) == await live_rows(database, undisturbed)
    end = await shelf.look_at(disturbed)
    assert (end.status, end.chunk_count) == ("indexed", CHUNKS)
