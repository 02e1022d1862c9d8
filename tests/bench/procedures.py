"""`make bench-procedures`: what it costs to match a message, by the number of procedures.

Triggers are of all three kinds, over a vocabulary of 5,000 words. The usual message has 10,000 characters of other
words with two triggers in it; the dense one has 10,000 characters of that vocabulary, so that it contains hundreds of
triggers and words of thousands. `first` is the first message after compiling. `recall` is the whole read side on a real
PostgreSQL with nothing changed since the last turn, `reload` after a change, and `nearest` the search by similarity
among five vectors for each procedure.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

from infra.local.postgres import with_server
from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.memory_config import MemoryConfig
from octopus.procedural.match import TriggerSet
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.store import PostgresProcedureStore
from octopus.recall import Query, Scope
from tests.support.embedder import WordEmbedder
from tests.support.procedures import dense_message, many_procedures, usual_message
from tests.support.schema import prepare

T = TypeVar("T")
SIZES = (100, 1_000, 10_000)
RUNS = 20


class TitanSized(WordEmbedder):
    """Vectors of the length that Titan v2 has."""

    dimensions = 1_024


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory, with_server(Path(directory) / "data") as server:
        database = Database.at(await prepare(server), pool_size=2)
        embedder = TitanSized()
        store = PostgresProcedureStore(database, EmbeddingSpace(database, embedder))
        print(f"{'procedures':>11}{'compile ms':>12}{'usual first':>13}{'usual':>8}{'dense first':>13}{'dense':>8}"
              f"{'recall':>9}{'reload':>9}{'nearest':>9}{'memory MB':>11}")  # fmt: skip
        for size in SIZES:
            await measure(database, store, embedder, size)
        await database.close()


async def measure(database: Database, store: PostgresProcedureStore, embedder: WordEmbedder, size: int) -> None:
    rng = random.Random(size)
    tenant = f"t{size}"
    agent = await PostgresAgentStore(database).create_agent(tenant, "aria", "", "You.", None, {})
    scope = Scope(tenant, "ada", agent.agent_id)
    procedures = many_procedures(rng, size, agent.agent_id)
    before = resident_mb()
    triggers, compiling = timed(lambda: TriggerSet(procedures))
    usual, dense = [[make(rng) for _ in range(RUNS)] for make in (usual_message, dense_message)]
    usual_ms = [timed(lambda m=m: triggers.decide(m))[1] for m in usual]
    dense_ms = [timed(lambda m=m: triggers.decide(m))[1] for m in dense]
    memory = resident_mb() - before

    for procedure in procedures:
        vectors = await embedder.embed([f"{procedure.name} {n}" for n in range(5)])
        await store.create_procedure(tenant, procedure, vectors, "created")
    recall = ProcedureRecall(store, embedder)
    recalls, reloads, nearest = [], [], []
    for message in usual[:5]:
        extra = many_procedures(rng, 1, agent.agent_id)[0]
        await store.create_procedure(tenant, extra, [], "created")
        reloads.append(await asked(recall, scope, embedder, message))
        recalls += [await asked(recall, scope, embedder, message) for _ in range(5)]
        began = time.perf_counter()
        await store.nearest_procedures(tenant, agent.agent_id, (await embedder.embed([message]))[0], 4)
        nearest.append((time.perf_counter() - began) * 1e3)
    print(f"{size:>11}{compiling:>12.0f}{usual_ms[0]:>13.1f}{median(usual_ms):>8.1f}{dense_ms[0]:>13.1f}"
          f"{median(dense_ms):>8.1f}{median(recalls):>9.1f}{median(reloads):>9.0f}{median(nearest):>9.1f}"
          f"{memory:>11.0f}")  # fmt: skip


async def asked(recall: ProcedureRecall, scope: Scope, embedder: WordEmbedder, message: str) -> float:
    async def embedding() -> list[float]:
        return (await embedder.embed([message]))[0]

    query = Query(message, embedding())
    await query.vector()
    began = time.perf_counter()
    await recall.recall(scope, query, MemoryConfig())
    return (time.perf_counter() - began) * 1e3


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """The result, and milliseconds."""
    began = time.perf_counter()
    result = run()
    return result, (time.perf_counter() - began) * 1e3


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096 / 2**20


if __name__ == "__main__":
    asyncio.run(main())
