"""The dialogue in passages that an embedding model can read whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octopus.episodic.ports import TokenCounter
from octopus.episodic.sentences import sentences
from octopus.episodic.transcript import Line

# Embedding models of this size were trained on about this much; a longer passage blurs into an average.
MOST_TOKENS = 200


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of dialogue and the messages that it covers."""

    text: str
    first_seq: int
    last_seq: int


def passages(lines: Sequence[Line], count: TokenCounter, limit: int) -> list[Passage]:
    """One passage per exchange, a question with its answer, if it fits `limit` tokens; else as few as it takes,
    cut between sentences. Each piece of a message names its speaker."""
    return [passage for exchange in _exchanges(lines) for passage in _packed(exchange, count, limit)]


def _exchanges(lines: Sequence[Line]) -> Iterator[list[Line]]:
    exchange: list[Line] = []
    for line in lines:
        if line.speaker == "User" and exchange:
            yield exchange
            exchange = []
        exchange.append(line)
    if exchange:
        yield exchange


def _packed(exchange: Sequence[Line], count: TokenCounter, limit: int) -> Iterator[Passage]:
    texts: list[str] = []
    first = last = filled = 0
    for line in exchange:
        label = f"{line.speaker}: "
        for ordinal, piece in enumerate(_pieces(line.text, count, limit - count(label))):
            text = piece if ordinal and texts else label + piece
            tokens = count(text) + 1
            if texts and filled + tokens > limit:
                yield Passage("\n".join(texts), first, last)
                text, texts, filled = label + piece, [], 0
            first = first if texts else line.seq
            last = line.seq
            texts.append(text)
            filled += tokens
    if texts:
        yield Passage("\n".join(texts), first, last)


def _pieces(text: str, count: TokenCounter, limit: int) -> Iterator[str]:
    """The text whole if it fits, else its sentences; one that does not fit is halved until it does."""
    if count(text) <= limit or len(text) < 2:
        yield text
        return
    whole = sentences(text)
    for sentence in whole if len(whole) > 1 else (text[: len(text) // 2], text[len(text) // 2 :]):
        yield from _pieces(sentence, count, limit)
