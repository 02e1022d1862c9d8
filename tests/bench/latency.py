"""`make bench-latency`: how long the read phase takes, by the size of the database.

    python -m tests.bench.latency [--size CHUNKS]... [--turns N] [--keep DIRECTORY] [--peers PYTHON]

A database holds SIZE chunks: half of them are one agent's, whose user has 10,000 facts; 1,000 another's, whose user has
1,000; the rest belong to many tenants. The agents have 1,000 procedures. Each turn asks the three stores concurrently,
as production does, for a message whose vector is known already. CPU is that of client and database for one turn.
Recall compares the ten best by index with those of an exact scan. The databases of `--keep` are filled once.

Whole turns are taken one at a time: from the request, with the embedding of its message, to the first token of a model
that answers at once. Peers index all chunks of the databases of `PEER_SIZES`, and the large agent's user asks for ten.
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
from psycopg import sql

from infra.local.postgres import SUPERUSER, Postgres
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.minilm import MiniLmEmbedder
from octopus.cloud.queries import load_queries
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
from tests.bench.latency_peers import PEERS, drop_database, measure_peer
from tests.bench.latency_turn import WholeTurns
from tests.support.observer import RecordingObserver
from tests.support.procedures import many_procedures
from tests.support.schema import prepare

_SQL = load_queries("tests.bench", "latency.sql")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
PEER_SIZES = (10_000, 100_000)
PEER_TURNS, DEPTH = 100, 10
CONCURRENT = (1, 4, 16)
PROCEDURES = 1_000
SETTINGS = {"shared_buffers": "2GB", "max_wal_size": "8GB", "max_connections": "200"}
CONFIG = MemoryConfig()
MODES: tuple[SearchMode, ...] = ("vector", "hybrid")
Asked = tuple[str, Vector]


class Stores:
    """The production read side on one database."""

    def __init__(self, database: Database) -> None:
        self.embedder = embedder = MiniLmEmbedder()
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
    recalls = [await overlap(stores, scope, turns[:50], mode) for mode in MODES]
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
                for h in await s.search(scope.tenant_id, [scope.agent_id], text, vector, mode, DEPTH)
            }
            for s in (stores.search, stores.exact)
        ]
        shares.append(len(found & exact) / len(exact))
    return float(np.mean(shares))


async def beside_peers(
    size: int, who: Owner, stores: Stores, turns: list[Asked], server: Postgres, python: Path | None
) -> list[str]:
    """Lines of the table of stores: ours in both modes, then the others if there is a Python that has them."""
    turns = turns[:PEER_TURNS]
    lines = []
    for mode in MODES:

        async def ours(it: Query, mode: SearchMode = mode) -> object:
            vector = await it.vector()
            return await stores.search.search(who.scope.tenant_id, [who.scope.agent_id], it.text, vector, mode, DEPTH)

        await timed(turns[:20], 1, ours)  # warm
        share = await overlap(stores, who.scope, turns, mode)
        lines.append(_line(size, f"Octopus, {mode}", await timed(turns, 1, ours), share))
    for name in PEERS if python else ():
        assert python is not None
        took, share = await measure_peer(name, server, f"latency_{size}", python, who.scope.tenant_id, turns, DEPTH)
        lines.append(_line(size, name, took, share))
    return lines


def _line(size: int, name: str, took: Sequence[float], *more: float) -> str:
    p50, p95 = np.percentile(took, [50, 95])
    return f"| {size:,} | {name} | {p50:.1f} | {p95:.1f} |" + "".join(f" {figure:.3f} |" for figure in more)


async def database_of(server: Postgres, size: int) -> tuple[str, list[Owner]]:
    """The address of the application role, and who owns most; filled if it is not there yet."""
    name = f"latency_{size}"
    with psycopg.connect(server.dsn("postgres", SUPERUSER)) as connection:
        there = connection.execute("select 1 from pg_database where datname = %s", (name,)).fetchone()
    if not there:
        began = time.perf_counter()
        filling = f"{name}_filling"  # what was interrupted is begun anew
        drop_database(server, filling)
        database = Database.at(await prepare(server, filling), pool_size=2)
        space_id = await Stores(database).space.id()
        await database.close()
        await asyncio.to_thread(fill, server.dsn(filling, SUPERUSER), size, space_id)
        with psycopg.connect(server.dsn("postgres", SUPERUSER), autocommit=True) as connection:
            rename = sql.SQL("alter database {} rename to {}")
            connection.execute(rename.format(sql.Identifier(filling), sql.Identifier(name)))
        print(f"{size:,} chunks filled in {time.perf_counter() - began:.0f} s", flush=True)
    with psycopg.connect(server.dsn(name, SUPERUSER)) as connection:
        agents: dict[str, UUID] = dict(connection.execute("select tenant_id, agent_id from agents").fetchall())
    largest = [
        Owner(Scope(o.scope.tenant_id, "ada", agents[o.scope.tenant_id]), o.chunks, o.facts) for o in owners(size)[:2]
    ]
    return server.dsn(name, "octopus_app"), largest


async def prepare_procedures(stores: Stores, owner: str, agents: Sequence[Owner], vector: Vector) -> None:
    """Make the procedures of the agents that have none yet."""
    world = World(seed=2)
    for who in agents:
        tenant, agent = who.scope.tenant_id, who.scope.agent_id
        if await stores.procedures.nearest_procedures(tenant, agent, vector, 1):
            continue
        for procedure in many_procedures(random.Random(5), PROCEDURES, agent):
            vectors = world.vectors(world.rng.integers(0, TOPICS, 3)).tolist()  # name, description and a phrase
            await stores.procedures.create_procedure(tenant, procedure, vectors, "created")
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(_SQL["analyze"])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, action="append", help=f"chunks in the database; {SIZES} by default")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="a directory for the databases")
    parser.add_argument("--peers", type=Path, help="the Python that has requirements/bench.txt")
    arguments = parser.parse_args()
    directory = arguments.keep or Path(tempfile.mkdtemp(prefix="octopus-latency-"))
    directory.mkdir(parents=True, exist_ok=True)
    server = Postgres(directory / "data", durable=False, settings=SETTINGS)
    server.start()
    whole: list[str] = []
    beside: list[str] = []
    with server:
        print("| database | agent | turns at once | p50 ms | p95 ms | CPU ms | ", end="")
        print("procedures / knowledge / episodes alone | p50 / slowest | recall vector / hybrid |")
        print("|---|---|---|---|---|---|---|---|---|")
        for size in arguments.size or SIZES:
            url, largest = await database_of(server, size)
            database = Database.at(url, pool_size=3 * max(CONCURRENT))
            stores, world = Stores(database), World()
            turns = [world.question() for _ in range(arguments.turns)]
            await prepare_procedures(stores, server.dsn(f"latency_{size}", SUPERUSER), largest, turns[0][1])
            for name, who in zip(("large", "small"), largest, strict=True):
                await measure(size, name, who, stores, turns, server)
                texts = [text for text, _ in turns]
                turned = WholeTurns(database, stores.phase, stores.embedder)
                await turned.first_token_ms(who.scope, texts[:10])  # warm
                whole.append(_line(size, name, await turned.first_token_ms(who.scope, texts)))
            if size in PEER_SIZES:
                beside += await beside_peers(size, largest[0], stores, turns, server, arguments.peers)
            await database.close()
        print("\nWhole turns, until the first token:\n\n| database | agent | p50 ms | p95 ms |\n|---|---|---|---|")
        print("\n".join(whole))
        print("\nStores, ten items of the large agent's:\n")
        print("| database | store | p50 ms | p95 ms | recall of the exact ten |")
        print("|---|---|---|---|---|\n" + "\n".join(beside))


if __name__ == "__main__":
    asyncio.run(main())
