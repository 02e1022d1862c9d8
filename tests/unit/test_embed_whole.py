"""Texts that are longer than the embedding model sees, and texts that come twice."""

from __future__ import annotations

import math

import pytest

from octopus.embedding import embed_whole
from tests.support.embedder import WordEmbedder


class ShortSighted(WordEmbedder):
    max_tokens = 10


async def test_what_fits_is_embedded_as_it_is_and_once() -> None:
    embedder = ShortSighted()
    assert await embed_whole(embedder, ["tea", "milk", "tea"]) == await WordEmbedder().embed(["tea", "milk", "tea"])
    assert embedder.texts == ["tea", "milk"]
    assert await embed_whole(embedder, []) == []


async def test_nothing_of_a_long_text_is_unseen() -> None:
    embedder = ShortSighted()
    text = " ".join(f"word{n}" for n in range(50))
    [vector] = await embed_whole(embedder, [text])
    assert max(map(embedder.count_tokens, embedder.texts)) <= 8
    assert " ".join("".join(embedder.texts).split()) == text
    assert math.hypot(*vector) == pytest.approx(1)
    [last] = await embedder.embed(["word49"])
    assert sum(a * b for a, b in zip(vector, last, strict=True)) > 0.1


async def test_a_text_without_blanks_is_cut_anywhere() -> None:
    class Letters(ShortSighted):
        def count_tokens(self, text: str) -> int:
            return len(text)

    embedder = Letters()
    await embed_whole(embedder, ["x" * 100])
    assert "".join(embedder.texts) in ("x" * 100, "x" * len("".join(embedder.texts)))
    assert max(map(len, embedder.texts)) <= 8
