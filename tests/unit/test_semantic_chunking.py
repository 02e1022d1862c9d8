"""Chunks keep to structure, size and order, whatever the text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopus.semantic.chunking import Chunker, Strategy
from octopus.semantic.types import Block, Passage

STRATEGIES: list[Strategy] = ["structure", "sentence", "fixed"]


def words(text: str) -> float:
    """Ten words fill a chunk."""
    return len(text.split()) / 10


def chunked(*blocks: Block, overlap: float = 0.0, strategy: Strategy = "structure") -> list[Passage]:
    return list(Chunker(words, overlap, strategy).chunks(blocks))


def texts(*blocks: Block, overlap: float = 0.0, strategy: Strategy = "structure") -> list[str]:
    return [chunk.text for chunk in chunked(*blocks, overlap=overlap, strategy=strategy)]


def test_small_blocks_share_a_chunk_and_headings_part_them() -> None:
    found = chunked(Block("One two."), Block("Three."), Block("Four.", "Four"), Block("Five.", "Four", page=2))
    assert found == [Passage("One two.\n\nThree."), Passage("Four.\n\nFive.", "Four")]


def test_a_block_that_no_longer_fits_begins_a_chunk_if_the_last_is_half_full() -> None:
    assert texts(Block("1 2 3 4 5 6."), Block("7 8 9. 10 11.")) == ["1 2 3 4 5 6.", "7 8 9. 10 11."]
    assert texts(Block("1 2."), Block("3 4 5 6 7. 8 9 10 11 12.")) == ["1 2.\n\n3 4 5 6 7.", "8 9 10 11 12."]


def test_sentences_are_kept_whole() -> None:
    prose = Block('He said "No." Then he left the room at once. Nobody followed him out there.')
    assert texts(prose, strategy="sentence") == [
        'He said "No. Then he left the room at once.',
        "Nobody followed him out there.",
    ]


def test_the_next_chunk_repeats_the_last_sentences() -> None:
    prose = Block("1 2 3 4. 5 6. 7 8. 9 10 11 12. 13 14 15 16.")
    assert texts(prose, overlap=0.4) == ["1 2 3 4. 5 6. 7 8.", "5 6. 7 8. 9 10 11 12.", "9 10 11 12. 13 14 15 16."]


def test_rows_are_kept_whole_under_their_header() -> None:
    table = Block("a | 1\nb | 2\nc | 3\nd | 4", kind="lines", header="key: value")
    assert texts(table) == ["key: value\na | 1\nb | 2", "key: value\nc | 3\nd | 4"]


def test_a_header_too_large_to_repeat_appears_once() -> None:
    table = Block("a b c d\ne f g h\ni j k l", kind="lines", header="1 2 3 4 5 6")
    assert texts(table) == ["1 2 3 4 5 6\na b c d", "e f g h\ni j k l"]


def test_a_word_longer_than_a_chunk_is_cut() -> None:
    chunks = list(Chunker(lambda text: len(text) / 10, 0.0).chunks([Block("x" * 25)]))
    assert "".join(chunk.text for chunk in chunks) == "x" * 25
    assert max(len(chunk.text) for chunk in chunks) <= 10


def test_a_chunk_says_where_it_begins() -> None:
    pages = [Block("1 2 3 4 5 6.", page=1), Block("7 8. 9 10 11 12 13 14 15.", page=2)]
    assert [chunk.page for chunk in chunked(*pages)] == [1, 2]
    assert [chunk.page for chunk in chunked(*pages, strategy="sentence")] == [1, 2]


def test_the_heading_counts() -> None:
    found = chunked(Block("1 2 3. 4 5 6. 7 8 9.", "A long heading here"))
    assert [words(f"{chunk.heading}\n{chunk.text}") for chunk in found] == [1.0, 0.7]


block_lists = st.lists(
    st.builds(
        Block,
        text=st.text("ab .\n!?", min_size=1, max_size=200),
        heading=st.sampled_from([None, "One", "Two three"]),
        kind=st.sampled_from(["prose", "lines"]),
        header=st.sampled_from([None, "h", "a b c d e f"]),
    ),
    max_size=6,
)


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=150, deadline=None)
@given(blocks=block_lists, overlap=st.sampled_from([0.0, 0.125, 0.5]))
def test_whatever_the_text_chunks_fit_and_lose_nothing(strategy: Strategy, blocks: list[Block], overlap: float) -> None:
    found = chunked(*blocks, overlap=overlap, strategy=strategy)
    for chunk in found:
        assert chunk.text == chunk.text.strip() != ""
        assert words(f"{chunk.heading or ''}\n{chunk.text}") <= 1.0
    whole = "".join("".join(f"{block.header or ''}{block.text}" for block in blocks).split())
    kept = "".join("".join(chunk.text for chunk in found).split())
    assert len(kept) >= len(whole) - sum(quotes in "\"'”’)]" for quotes in whole)
    if not overlap and not any(block.header for block in blocks):
        assert kept == whole


@given(blocks=block_lists)
@settings(max_examples=50, deadline=None)
def test_the_same_blocks_give_the_same_chunks(blocks: list[Block]) -> None:
    assert chunked(*blocks, overlap=0.3) == chunked(*blocks, overlap=0.3)
