"""`make bench-ingest`: what ingestion costs beside the embedder, in memory, and when little or nothing has changed.

Throughput: the descriptions of installed Python packages (real Markdown) through the whole of ingestion (S3, reader
process, chunks, embedder, PostgreSQL) and, on the very same texts, through the embedder alone; in turn, so that other
load on the machine falls on both. Memory: plain text of growing size, with an embedder that costs nothing, in a
process of its own; the peak of that process and of its reader. Changes: how many texts of a long document are
embedded again.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path
from uuid import UUID

import psutil

from infra.local.postgres import Postgres, with_server
from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import Database
from octopus.cloud.minilm import MiniLmEmbedder
from octopus.cloud.titan import TitanEmbedder
from octopus.relevance import Vector
from tests.support.schema import prepare
from tests.support.shelf import TENANT, Shelf

DOCUMENTS = 30
SMALLEST, LARGEST = 4_000, 16_000  # bytes of a document
MEMORY_MB = (1, 10, 50)
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}


class CountingEmbedder(MiniLmEmbedder):
    """Keeps what it was asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.batches.append(list(texts))
        return await super().embed(texts)


class FreeEmbedder(TitanEmbedder):
    """Costs nothing, and has no model in memory: what is measured is everything else."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [[1.0] + [0.0] * (self.dimensions - 1) for _ in texts]


def descriptions() -> list[tuple[str, bytes]]:
    """File names and texts of the installed packages' descriptions."""
    found = {d.metadata["Name"]: d.read_text("METADATA") or "" for d in distributions()}
    texts = ((f"{name}.md", text.partition("\n\n")[2].encode()) for name, text in sorted(found.items()))
    return [(name, text) for name, text in texts if SMALLEST <= len(text) <= LARGEST]


@contextmanager
def moto() -> Iterator[None]:
    """moto in a process of its own; boto3 is pointed to it."""
    with subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", "0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr
        address = next(line.split()[-1] for line in process.stderr if "Running on http" in line)
        os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=address)
        try:
            yield
        finally:
            process.terminate()
            process.stderr.close()


async def throughput(database: Database, agent_id: UUID) -> None:
    embedder = CountingEmbedder()
    await embedder.embed(["warm up"])
    shelf = Shelf(database, embedder, agent_id)
    documents = descriptions()[:DOCUMENTS]
    whole = alone = 0.0
    chunks = 0
    for name, text in documents:
        document = await shelf.announce(name)
        shelf.put(document, text)
        embedder.batches.clear()
        began = time.perf_counter()
        assert await shelf.ingest_document.ingest(document.object_key) == "indexed"
        whole += time.perf_counter() - began
        batches = list(embedder.batches)
        began = time.perf_counter()
        for batch in batches:
            await embedder.embed(batch)
        alone += time.perf_counter() - began
        chunks += sum(map(len, batches))
    shelf.close()
    size = sum(len(text) for _, text in documents)
    print(
        f"  {len(documents)} documents of {size / len(documents) / 1e3:.0f} kB, {chunks} chunks: {whole:.1f} s, "
        f"{len(documents) / whole * 60:.0f} documents/min, {size / whole * 60 / 1e6:.2f} MB/min; "
        f"embedder alone {alone:.1f} s: {alone / whole:.0%}",
        flush=True,
    )


async def changes(database: Database, agent_id: UUID) -> None:
    embedder = CountingEmbedder()
    shelf = Shelf(database, embedder, agent_id)
    text = b"\n\n".join(text for _, text in descriptions()[:30])
    document = await shelf.announce("long.md")

    async def ingested(label: str, content: bytes) -> None:
        shelf.put(document, content)
        embedder.batches.clear()
        began = time.perf_counter()
        outcome = await shelf.ingest_document.ingest(document.object_key)
        took = time.perf_counter() - began
        chunks = (await shelf.look_at(document)).chunk_count
        texts = sum(map(len, embedder.batches))
        print(f"  {label:36}{outcome:>10}{chunks:>8} chunks{texts:>6} embedded{took:>8.2f} s")

    words = text.split(b" ")
    middle, part = len(words) // 2, len(words) // 100
    one_place = words[:middle] + [b"changed"] * part + words[middle + part :]
    chosen = set(random.Random(1).sample(range(len(words)), part))
    everywhere = [b"changed" if i in chosen else word for i, word in enumerate(words)]
    await ingested("first time", text)
    await ingested("unchanged", text)
    await ingested("1 % of the words changed, one place", b" ".join(one_place))
    await ingested("back to the first", text)
    await ingested("a sentence inserted at the start", b"This sentence is new. " + text)
    await ingested("1 % of the words changed, everywhere", b" ".join(everywhere))
    shelf.close()


async def one_large_document(url: str, agent_id: str, megabytes: int) -> None:
    """In a process of its own: ingest, and print the peak of memory."""
    database = Database.at(url, pool_size=2)
    shelf = Shelf(database, FreeEmbedder(), UUID(agent_id))
    document = await shelf.announce(f"{megabytes}.txt")
    with tempfile.TemporaryFile() as file:
        for paragraph in prose(megabytes * 1_000_000):
            file.write(paragraph)
        size = file.tell()
        file.seek(0)
        shelf.s3.put_object(Bucket=shelf.bucket, Key=document.object_key, Body=file)
    before = peak()
    reader_peak = asyncio.create_task(peak_of_children())
    began = time.perf_counter()
    outcome = await shelf.ingest_document.ingest(document.object_key)
    took = time.perf_counter() - began
    reader_peak.cancel()
    worker, reader = peak(), max(peaks, default=0)
    chunks = (await shelf.look_at(document)).chunk_count
    print(
        f"  {size / 1e6:5.1f} MB {outcome:>8} {chunks:>7} chunks {took:7.1f} s   worker {worker} MB "
        f"({before} before), reader {reader} MB, together {worker + reader} MB",
        flush=True,
    )
    shelf.close()
    await database.close()


peaks: list[int] = []


def peak() -> int:
    """The most memory that this process has had in use, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


async def peak_of_children() -> None:
    """Note the memory of the reader and its fork, which share most of it, several times a second."""
    while True:
        for child in psutil.Process().children(recursive=True):
            try:
                peaks.append(child.memory_full_info().uss // 2**20)
            except psutil.Error:
                continue
        await asyncio.sleep(0.2)


def prose(size: int) -> Iterator[bytes]:
    """Paragraphs of sentences of words, so many bytes of them, each different."""
    rng = random.Random(size)
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(20_000)]
    written = 0
    while written < size:
        sentences = (" ".join(rng.choices(vocabulary, k=rng.randint(6, 20))) + "." for _ in range(rng.randint(2, 8)))
        paragraph = (" ".join(sentences) + "\n\n").encode()
        written += len(paragraph)
        yield paragraph


async def fresh(server: Postgres, name: str) -> tuple[str, Database, UUID]:
    """A database with an agent."""
    url = await prepare(server, name)
    database = Database.at(url, pool_size=4)
    agent = await PostgresAgentStore(database).create_agent(TENANT, "aria", "", "You.", None, {})
    return url, database, agent.agent_id


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory, with_server(Path(directory) / "data") as server, moto():
        sections = sys.argv[1:] or ["throughput", "changes", "memory"]
        url, database, agent_id = await fresh(server, "octopus_bench")
        if "throughput" in sections:
            print("Throughput, MiniLM", flush=True)
            await throughput(database, agent_id)
        if "changes" in sections:
            print("A document that comes again", flush=True)
            await changes(database, agent_id)
        await database.close()
        url, database, agent_id = await fresh(server, "octopus_memory")
        await database.close()
        print("Memory by size of a text, vectors as of Titan v2", flush=True)
        for megabytes in MEMORY_MB if "memory" in sections else ():
            arguments = [sys.executable, "-m", "tests.bench.ingest", url, str(agent_id), str(megabytes)]
            await (await asyncio.create_subprocess_exec(*arguments)).wait()


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[3].isdigit():
        asyncio.run(one_large_document(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    else:
        asyncio.run(main())
