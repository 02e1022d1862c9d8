"""`make bench-latency`: how long the read phase takes, by the size of the database.

    python -m tests.bench.latency [--size CHUNKS]... [--turns N] [--keep DIRECTORY]

A database holds SIZE chunks: half of them are one agent's, whose user has 10,000 facts; 1,000 another's, whose user has
1,000; the rest belong to many tenants. The agents have 1,000 procedures. Each turn asks the three stores concurrently,
as production does, for a message whose vector is known already. CPU is that of client and database for one turn.
Recall compares the ten best by index with those of an exact scan. The databases of `--keep` are filled once.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import UUID

import numpy as np
import psutil
import psycopg

from infra.local.postgres import SUPERUSER, Postgres
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.minilm import MiniLmEmbedder
from octopus.episodic.recall import EpisodicRecall
from octopus.episodic.store import PostgresEpisodeStore
from octopus.memory_config import MemoryConfig
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.store import PostgresProcedureStore
from octopus.read_phase import ReadPhase
from octopus.recall import Query, Scope
from octopus.relevance import Vector
from octopus.semantic.recall import KnowledgeRecall
from octopus.semantic.search_store import PostgresKnowledgeSearch
from octopus.semantic.types import SearchMode
from tests.bench.latency_data import TOPICS, Owner, World, fill, owners
from tests.support.observer import RecordingObserver
from tests.support.procedures import many_procedures
from tests.support.schema import prepare

SIZES = (1_000, 10_000, 100_000)
CONCURRENT = (1, 4, 16)
PROCEDURES = 1_000
SETTINGS = {"shared_buffers": "2GB", "max_wal_size": "8GB", "max_connections": "200"}
CONFIG = MemoryConfig()
Asked = tuple[str, Vector]


class Stores:
    """The production read side on one database."""

    def __init__(self, database: Database) -> None:
        embedder = MiniLmEmbedder()
        self.space = EmbeddingSpace(database, embedder)
        self.procedures = PostgresProcedureStore(database, self.space)
        self.procedural = ProcedureRecall(self.procedures, embedder)
        self.search = PostgresKnowledgeSearch(database, self.space)
        self.exact = PostgresKnowledgeSearch(database, self.space, exact_to=10**9)
        self.semantic = KnowledgeRecall(self.search, embedder.calibration)
        self.episodic = EpisodicRecall(PostgresEpisodeStore(database, self.space), embedder)
        self.phase = ReadPhase(
            self.procedural, self.semantic, self.episodic, deadline_s=60, observer=RecordingObserver()
        )


def query(asked: Asked) -> Query:
    async def known() -> Vector:
        return asked[1]

    return Query(asked[0], known())


async def timed(turns: Sequence[Asked], at_once: int, run: Callable[[Query], Awaitable[object]]) -> list[float]:
    """Milliseconds of each turn, `at_once` of them running at any time."""
    waiting = iter(turns)

    async def one_after_another() -> list[float]:
        took = []
        for asked in waiting:
            it = query(asked)
            await it.vector()
            began = time.perf_counter()
            await run(it)
            took.append((time.perf_counter() - began) * 1e3)
        return took

    return [ms for lane in await asyncio.gather(*(one_after_another() for _ in range(at_once))) for ms in lane]


def cpu_ms(server: Postgres) -> float:
    """What the server's processes and this one have used so far: unlike time, it does not depend on who else runs."""
    used = [p.cpu_times() for p in (psutil.Process(), *psutil.Process(server.process.pid).children(recursive=True))]
    return 1e3 * float(sum(times.user + times.system for times in used))


async def measure(size: int, name: str, who: Owner, stores: Stores, turns: list[Asked], server: Postgres) -> None:
    scope = who.scope

    async def alone(memory: KnowledgeRecall | EpisodicRecall | ProcedureRecall) -> list[float]:
        return await timed(turns, 1, lambda it: memory.recall(scope, it, CONFIG))

    await timed(turns[:20], 4, lambda it: stores.phase.read(scope, it, CONFIG))  # warm
    memories = (stores.procedural, stores.semantic, stores.episodic)
    store_ms = [float(np.median(await alone(memory))) for memory in memories]
    recalls = [await overlap(stores, scope, turns[:50], mode) for mode in ("vector", "hybrid")]
    for at_once in CONCURRENT:
        before = cpu_ms(server)
        took = await timed(turns, at_once, lambda it: stores.phase.read(scope, it, CONFIG))
        cpu = (cpu_ms(server) - before) / len(turns)
        p50, p95 = np.percentile(took, [50, 95])
        ratio = f"{p50 / max(store_ms):.2f}" if at_once == 1 else ""
        print(
            f"| {size:,} | {name}: {who.chunks:,} chunks, {who.facts:,} facts | {at_once} | {p50:.1f} | {p95:.1f} "
            f"| {cpu:.1f} | "
            + " / ".join(f"{ms:.1f}" for ms in store_ms)
            + f" | {ratio} | {recalls[0]:.3f} / {recalls[1]:.3f} |",
            flush=True,
        )


async def overlap(stores: Stores, scope: Scope, turns: Sequence[Asked], mode: SearchMode) -> float:
    """The share of the exact ten best that the production search has among its own."""
    shares = []
    for text, vector in turns:
        found, exact = [
            {
                (h.document_id, h.ordinal)
                for h in await s.search(scope.tenant_id, [scope.agent_id], text, vector, mode, 10)
            }
            for s in (stores.search, stores.exact)
        ]
        shares.append(len(found & exact) / len(exact))
    return float(np.mean(shares))


async def database_of(server: Postgres, size: int) -> tuple[str, list[Owner]]:
    """The address of the application role, and who owns most; filled if it is not there yet."""
    name = f"latency_{size}"
    with psycopg.connect(server.dsn("postgres", SUPERUSER)) as connection:
        there = connection.execute("select 1 from pg_database where datname = %s", (name,)).fetchone()
    if not there:
        began = time.perf_counter()
        url = await prepare(server, name)
        database = Database.at(url, pool_size=2)
        stores = Stores(database)
        await asyncio.to_thread(fill, server.dsn(name, SUPERUSER), size, await stores.space.id())
        await database.close()
        print(f"{size:,} chunks filled in {time.perf_counter() - began:.0f} s", flush=True)
    with psycopg.connect(server.dsn(name, SUPERUSER)) as connection:
        agents: dict[str, UUID] = dict(connection.execute("select tenant_id, agent_id from agents").fetchall())
    largest = [
        Owner(Scope(o.scope.tenant_id, "ada", agents[o.scope.tenant_id]), o.chunks, o.facts) for o in owners(size)[:2]
    ]
    return server.dsn(name, "octopus_app"), largest


async def add_procedures(stores: Stores, who: Owner) -> None:
    world = World(seed=2)
    for procedure in many_procedures(random.Random(5), PROCEDURES, who.scope.agent_id):
        vectors = world.vectors(world.rng.integers(0, TOPICS, 3)).tolist()  # name, description and a phrase
        await stores.procedures.create_procedure(who.scope.tenant_id, procedure, vectors, "created")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, action="append", help=f"chunks in the database; {SIZES} by default")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="a directory for the databases")
    arguments = parser.parse_args()
    directory = arguments.keep or Path(tempfile.mkdtemp(prefix="octopus-latency-"))
    directory.mkdir(parents=True, exist_ok=True)
    server = Postgres(directory / "data", durable=False, settings=SETTINGS)
    server.start()
    with server:
        print("| database | agent | turns at once | p50 ms | p95 ms | CPU ms | ", end="")
        print("procedures / knowledge / episodes alone | p50 / slowest | recall vector / hybrid |")
        print("|---|---|---|---|---|---|---|---|---|")
        for size in arguments.size or SIZES:
            url, largest = await database_of(server, size)
            database = Database.at(url, pool_size=3 * max(CONCURRENT))
            stores, world = Stores(database), World()
            turns = [world.question() for _ in range(arguments.turns)]
            for name, who in zip(("large", "small"), largest, strict=True):
                listed = await stores.procedures.nearest_procedures(
                    who.scope.tenant_id, who.scope.agent_id, turns[0][1], 1
                )
                if not listed:
                    await add_procedures(stores, who)
                await measure(size, name, who, stores, turns, server)
            await database.close()


if __name__ == "__main__":
    asyncio.run(main())
