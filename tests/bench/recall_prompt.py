"""Evidence in the prompt: what of it is left after thresholds, top-k and token caps, in the assembled section.

    python -m tests.bench.recall_prompt DATA [--vectors FILE]

LoCoMo: a turn counts when its text is in the section of past conversations; each session is an episode of its turns,
with no summary and no facts, for there is no model here to write any. Cranfield: an abstract counts when it is in the
section of knowledge; `precision` is the share of relevant ones among those shown.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from infra.local.postgres import with_server
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.tokens import count_tokens
from octopus.episodic.recall import EpisodicRecall
from octopus.memory_config import MemoryConfig
from octopus.recall import Query, Scope
from octopus.relevance import Vector
from octopus.semantic.recall import KnowledgeRecall
from octopus.working.selection import select_episodes, select_knowledge
from octopus.working.types import Tokens
from tests.bench.recall_data import Collection, cranfield, locomo
from tests.bench.recall_systems import TENANT, OctopusEpisodes, OctopusKnowledge, texts_of
from tests.bench.recall_vectors import KeptEmbedder
from tests.support.schema import prepare

TOKENS = Tokens(count_tokens, 1.2)  # the factor for Claude
EPISODES: list[dict[str, Any]] = [
    {},
    {"episodic_min_score": 0.6},
    {"episodic_min_score": 0.7},
    {"episodic_min_score": 0.75},
    {"episodic_top_k": 5, "episodic_max_tokens": 2_000},
    {"episodic_top_k": 10, "episodic_max_tokens": 4_000},
]
KNOWLEDGE: list[dict[str, Any]] = [
    {},
    {"semantic_min_score": 0.6},
    {"semantic_min_score": 0.75},
    {"semantic_search": "vector"},
    {"semantic_top_k": 10, "semantic_context_max_tokens": 4_000},
]


def asked(text: str, vector: Vector) -> Query:
    async def known() -> Vector:
        return vector

    return Query(text, known())


async def episodes(collections: Sequence[Collection], system: OctopusEpisodes, embedder: KeptEmbedder) -> None:
    recall = EpisodicRecall(system.store, embedder)
    shares: list[list[float]] = [[] for _ in EPISODES]
    shown: list[list[int]] = [[] for _ in EPISODES]
    for collection in collections:
        await system.add(await texts_of(collection, True, embedder))
        vectors = await embedder.embed([question.text for question in collection.questions])
        for question, vector in zip(collection.questions, vectors, strict=True):
            if question.category == 5:
                continue  # what was not said has no evidence to show
            for n, changes in enumerate(EPISODES):
                config = MemoryConfig(**changes)
                found = await recall.recall(system.scope, asked(question.text, vector), config)
                selection = select_episodes(found, config, TOKENS)
                text = " ".join((selection.text or "").split())
                evidence = [" ".join(collection.items[i].said.split()) for i in question.relevant]
                shares[n].append(float(np.mean([it in text for it in evidence])))
                shown[n].append(selection.tokens)
    print("\n| LoCoMo, categories 1-4 | evidence in the prompt | tokens |\n|---|---|---|")
    for changes, share, tokens in zip(EPISODES, shares, shown, strict=True):
        print(f"| {changes or 'defaults'} | {np.mean(share):.3f} | {np.mean(tokens):.0f} |")


async def knowledge(collection: Collection, system: OctopusKnowledge, embedder: KeptEmbedder) -> None:
    recall = KnowledgeRecall(system.search, embedder.calibration)
    await system.add(await texts_of(collection, True, embedder))
    vectors = await embedder.embed([question.text for question in collection.questions])
    print("\n| Cranfield | evidence in the prompt | precision | shown | tokens |\n|---|---|---|---|---|")
    for changes in KNOWLEDGE:
        config = MemoryConfig(**changes)
        rows = []
        for question, vector in zip(collection.questions, vectors, strict=True):
            found = await recall.recall(Scope(TENANT, "ada", system.agent), asked(question.text, vector), config)
            selection = select_knowledge(found, config, TOKENS)
            shown = found.chunks[: selection.section().included]
            hits = sum(system.position(chunk.document_id) in question.relevant for chunk in shown)
            rows.append((hits / len(question.relevant), hits, len(shown), selection.tokens))
        share, hits, many, tokens = np.mean(rows, axis=0)
        print(f"| {changes or 'defaults'} | {share:.3f} | {hits / many:.3f} | {many:.1f} | {tokens:.0f} |")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--vectors", type=Path, default=Path(tempfile.gettempdir()) / "octopus-bench-vectors.sqlite")
    arguments = parser.parse_args()
    embedder = KeptEmbedder(arguments.vectors)
    with tempfile.TemporaryDirectory() as directory, with_server(Path(directory) / "data") as server:
        database = Database.at(await prepare(server), pool_size=4)
        space = EmbeddingSpace(database, embedder)
        await episodes(locomo(arguments.data), OctopusEpisodes(database, space, embedder), embedder)
        for collection in cranfield(arguments.data):
            await knowledge(collection, OctopusKnowledge(database, space, "hybrid"), embedder)
        await database.close()


if __name__ == "__main__":
    asyncio.run(main())
