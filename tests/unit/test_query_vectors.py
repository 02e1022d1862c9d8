"""Questions that are asked again."""

from __future__ import annotations

from octopus.query_vectors import QueryEmbedder
from tests.support.embedder import WordEmbedder


async def test_a_question_is_embedded_once_while_it_is_among_the_last() -> None:
    behind = WordEmbedder()
    embedder = QueryEmbedder(behind, remembered=2)

    first = await embedder.embed(["refund"])
    assert await embedder.embed(["refund"]) == first == await WordEmbedder().embed(["refund"])
    for text in ("weather", "refund", "holiday", "refund", "weather"):  # before the holiday the weather is least recent
        await embedder.embed([text])

    assert behind.texts == ["refund", "weather", "holiday", "weather"]


async def test_texts_to_store_are_not_remembered() -> None:
    behind = WordEmbedder()
    embedder = QueryEmbedder(behind)
    await embedder.embed(["one", "two"])
    await embedder.embed(["one"])
    assert behind.texts == ["one", "two", "one"]
