"""`make bench-recall DATA=…`: what recall finds, on LoCoMo and Cranfield, beside what others find.

    python -m tests.bench.recall DATA [--set NAME]... [--system TEXT]... [--vectors FILE] [--peers PYTHON]

Every system indexes the same texts with the same vectors and is asked the same questions. LoCoMo: one user per
conversation, an item is a turn, with its speaker's name in front and without; R@n is the share of a question's
evidence among the first n, and `sessions` ranks sessions by their best turns. Categories 1 to 4, as the published
figures; Hit@1 of sessions is over all five. Cranfield: an item is an abstract. `ms` is the store's time for ten.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from infra.local.postgres import with_server
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from tests.bench.recall_data import CATEGORIES, Collection, cranfield, locomo
from tests.bench.recall_metrics import DEPTH, found, interval, ndcg, sessions_by_best_item
from tests.bench.recall_systems import (
    Bm25,
    ExactVector,
    FullText,
    OctopusEpisodes,
    OctopusKnowledge,
    Peer,
    System,
    texts_of,
)
from tests.bench.recall_vectors import KeptEmbedder
from tests.support.schema import create_database, prepare

PEERS = ("mem0", "LangGraph", "LlamaIndex")
RANKED = 200  # items, from which sessions are ranked


@dataclass
class Outcome:
    """One system on one data set: a row per question."""

    rows: list[tuple[float, float, float, float, float]] = field(
        default_factory=list
    )  # R@1 R@10 nDCG session-nDCG Hit@1
    categories: list[int | None] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, ranked: Sequence[int], collection: Collection, number: int, seconds: float) -> None:
        question, sessions = collection.questions[number], collection.sessions()
        by_session = sessions_by_best_item(ranked, sessions)
        relevant = {sessions[item] for item in question.relevant}
        self.rows.append(
            (
                found(ranked, question.relevant, 1),
                found(ranked, question.relevant, DEPTH),
                ndcg(ranked, question.relevant),
                ndcg(by_session, relevant),
                float(by_session[:1] != [] and by_session[0] in relevant),
            )
        )
        self.categories.append(question.category)
        self.seconds.append(seconds)

    def of(self, column: int, *, adversarial: bool = False, category: int | None = None) -> np.ndarray:
        kept = [
            row[column]
            for row, c in zip(self.rows, self.categories, strict=True)
            if (adversarial or c != 5) and (category is None or c == category)
        ]
        return np.array(kept)


async def run(system: System, collections: Sequence[Collection], say: bool, embedder: KeptEmbedder) -> Outcome:
    outcome = Outcome()
    for collection in collections:
        asked = await embedder.embed([question.text for question in collection.questions])
        await system.add(await texts_of(collection, say, embedder))
        for number, question in enumerate(collection.questions):
            ranked = await system.rank(question.text, asked[number], RANKED)
            began = time.perf_counter()
            await system.rank(question.text, asked[number], DEPTH)
            took = system.took if isinstance(system, Peer) else None
            outcome.add(ranked, collection, number, took or time.perf_counter() - began)
    return outcome


def report(name: str, outcomes: dict[str, Outcome]) -> None:
    print(f"\n{name}, {len(next(iter(outcomes.values())).rows)} questions\n")
    dialogue = any(category for category in next(iter(outcomes.values())).categories)
    more = " | sessions nDCG@10 | sessions Hit@1" if dialogue else ""
    print(f"| system | R@1 | R@10 | nDCG@10{more} | ms p50 |\n|---|---|---|---{'|---|---' if dialogue else ''}|---|")
    for system, o in outcomes.items():
        cells = [o.of(column).mean() for column in range(4 if dialogue else 3)]
        cells += [o.of(4, adversarial=True).mean()] if dialogue else []
        figures = " | ".join(f"{cell:.3f}" for cell in cells)
        print(f"| {system} | {figures} | {1000 * float(np.median(o.seconds)):.1f} |")
    ours = next((o for system, o in outcomes.items() if system.startswith("Octopus")), None)
    if ours is None:
        return
    print("\nnDCG@10 of ours less theirs, 95 % by paired bootstrap:")
    for system, o in outcomes.items():
        if o is not ours:
            low, high = interval(ours.of(2), o.of(2))
            print(f"  {system}: {(ours.of(2) - o.of(2)).mean():+.3f} ({low:+.3f} to {high:+.3f})")
    if dialogue:
        print("by category, nDCG@10 / R@10:")
        for category, title in CATEGORIES.items():
            cells = [ours.of(column, adversarial=True, category=category) for column in (2, 1)]
            print(f"  {title} ({len(cells[0])}): {cells[0].mean():.3f} / {cells[1].mean():.3f}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--set", action="append", choices=["speakers", "no-speakers", "cranfield"])
    parser.add_argument("--system", action="append", help="only systems whose name contains this")
    parser.add_argument("--vectors", type=Path, default=Path(tempfile.gettempdir()) / "octopus-bench-vectors.sqlite")
    parser.add_argument("--peers", type=Path, help="the Python that has requirements/bench.txt")
    arguments = parser.parse_args()
    embedder = KeptEmbedder(arguments.vectors)
    with tempfile.TemporaryDirectory() as directory, with_server(Path(directory) / "data") as server:
        url = await prepare(server)
        database = Database.at(url, pool_size=4)
        space = EmbeddingSpace(database, embedder)
        plain = server.dsn("postgres", "postgres")
        knowledge = [OctopusKnowledge(database, space, mode) for mode in ("hybrid", "vector")]
        others: list[System] = [Bm25(plain), FullText(plain), ExactVector()]
        peers: list[Peer] = []
        for name in PEERS if arguments.peers else ():
            create_database(server, f"peer_{name.lower()}")
            peers.append(Peer(name, arguments.peers, server.dsn(f"peer_{name.lower()}", "postgres")))
        sets = {
            "speakers": ("LoCoMo turns with speakers", locomo, True),
            "no-speakers": ("LoCoMo turns without speakers", locomo, False),
            "cranfield": ("Cranfield", cranfield, True),
        }
        results: dict[str, dict[str, Outcome]] = defaultdict(dict)
        for key in arguments.set or sets:
            title, load, say = sets[key]
            collections = load(arguments.data)
            ours = knowledge if key == "cranfield" else [OctopusEpisodes(database, space, embedder), knowledge[0]]
            for system in [*ours, *others, *peers]:
                if not arguments.system or any(text in system.name for text in arguments.system):
                    results[title][system.name] = await run(system, collections, say, embedder)
                    print(f"{title}: {system.name} done", flush=True)
        for title, outcomes in results.items():
            report(title, outcomes)
        for peer in peers:
            peer.close()
        await database.close()


if __name__ == "__main__":
    asyncio.run(main())
