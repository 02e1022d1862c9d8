"""Which way of cutting serves retrieval best: `python -m tests.bench.chunking DATA [ABSTRACTS]`.

DATA is a folder with Cranfield (`cranfield_docs.jsonl`, `cranfield_dev_queries.jsonl`). Twenty abstracts in a row make
one document, a paragraph each. For each query the nearest chunks are taken until they fill 1,000 tokens, so that large
chunks and much overlap have their price. `shown` is the mean share of the query's relevant abstracts of which at least
half the words are then in the prompt; `useful` the share of the prompt's words that are theirs.

The rows named text-splitter appear where the package `semantic-text-splitter` is installed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from octopus.cloud.minilm import MiniLmEmbedder
from octopus.cloud.tokens import count_tokens
from octopus.semantic.chunking import Chunker, Strategy, share_of
from octopus.semantic.types import Block
from tests.bench.recall_data import cranfield

TOGETHER = 20
BUDGET = 1_000
Cut = Callable[[list[str]], Iterator[str]]


def chunker(strategy: Strategy, tokens: int, overlap: float, embedder: MiniLmEmbedder) -> Cut:
    def cut(paragraphs: list[str]) -> Iterator[str]:
        share = share_of(tokens, count_tokens, embedder)
        for chunk in Chunker(share, overlap, strategy).chunks(Block(paragraph) for paragraph in paragraphs):
            yield chunk.text

    return cut


def text_splitter(overlap: int, embedder: MiniLmEmbedder) -> Cut:
    from semantic_text_splitter import TextSplitter

    splitter = TextSplitter.from_callback(embedder.count_tokens, embedder.max_tokens - 2, overlap=overlap)
    return lambda paragraphs: iter(splitter.chunks("\n\n".join(paragraphs)))


async def main(data: Path, limit: int) -> None:
    (collection,) = cranfield(data)
    abstracts = [item.text for item in collection.items[:limit]]
    queries = [
        (question.text, relevant)
        for question in collection.questions
        if (relevant := [i for i in question.relevant if i < limit])
    ]
    embedder = MiniLmEmbedder()
    asked = np.array(await embedder.embed([text for text, _ in queries]))
    ways: dict[str, Cut] = {
        "structure 512/64": chunker("structure", 512, 64 / 512, embedder),
        "structure 512/0": chunker("structure", 512, 0.0, embedder),
        "structure 128/16": chunker("structure", 128, 16 / 128, embedder),
        "sentence 512/64": chunker("sentence", 512, 64 / 512, embedder),
        "fixed 512/64": chunker("fixed", 512, 64 / 512, embedder),
    }
    try:
        ways |= {"text-splitter /32": text_splitter(32, embedder), "text-splitter /0": text_splitter(0, embedder)}
    except ImportError:
        print("semantic-text-splitter is not installed")
    print(f"{len(abstracts)} abstracts, {len(queries)} queries")
    print(f"{'':20}{'chunks':>8}{'tokens':>8}{'cut s':>8}{'shown':>8}{'useful':>8}")
    for name, cut in ways.items():
        began = time.process_time()
        chunks = [
            chunk for start in range(0, len(abstracts), TOGETHER) for chunk in cut(abstracts[start : start + TOGETHER])
        ]
        seconds = time.process_time() - began
        sizes = [count_tokens(chunk) for chunk in chunks]
        scores = asked @ np.array(await embedder.embed(chunks)).T
        shown, useful = [], []
        for row, (_, relevant) in zip(scores, queries, strict=True):
            prompt, filled = [], 0
            for i in np.argsort(-row):
                if filled + sizes[i] > BUDGET:
                    break
                prompt.append(chunks[i])
                filled += sizes[i]
            words = [word for chunk in prompt for word in chunk.split()]
            there = " ".join(" ".join(words).split())
            parts = [covered(abstracts[i], there) for i in relevant]
            shown.append(sum(part >= 0.5 for part in parts) / len(parts))
            theirs = sum(part * len(abstracts[i].split()) for part, i in zip(parts, relevant, strict=True))
            useful.append(theirs / max(1, len(words)))
        print(f"{name:20}{len(chunks):8}{np.mean(sizes):8.0f}{seconds:8.1f}{np.mean(shown):8.3f}{np.mean(useful):8.3f}",
              flush=True)  # fmt: skip


def covered(abstract: str, prompt: str, run: int = 8) -> float:
    """The share of the abstract's words that are in the prompt, in runs of eight."""
    words = abstract.split()
    if len(words) < run:
        return float(" ".join(words) in prompt)
    present = [False] * len(words)
    for i in range(len(words) - run + 1):
        if " ".join(words[i : i + run]) in prompt:
            present[i : i + run] = [True] * run
    return sum(present) / len(words)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_400))
