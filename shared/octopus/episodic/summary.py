"""What to remember of a session: a summary and key facts, by the model, by extract, or word for word."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from octopus.episodic.ports import TokenCounter
from octopus.episodic.sentences import sentences
from octopus.episodic.transcript import Line
from octopus.episodic.types import SummarySource

MOST_SUMMARY_TOKENS = 200  # the reference system's limit
MOST_EXTRACTS = 8
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that stands by itself, and the messages that it comes from."""

    statement: str
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Digest:
    """What is remembered of a session."""

    summary: str
    facts: list[Fact]
    source: SummarySource


def verbatim(lines: Sequence[Line], count: TokenCounter) -> Digest:
    """A session so short that it is its own summary."""
    said = " ".join(f"{line.speaker}: {' '.join(line.text.split())}" for line in lines)
    return Digest(shortened(said, count), [], "verbatim")


def extract(lines: Sequence[Line], count: TokenCounter) -> Digest:
    """The user's own words, for want of a model: the sentences with the words that the session repeats most.

    Score: mean frequency in the session of a sentence's words of three letters or more (SumBasic, Nenkova and
    Vanderwende 2005, without its update step). Questions give way to statements.
    """
    said = [(line, sentence) for line in lines if line.speaker == "User" for sentence in sentences(line.text)]
    if not said:
        said = [(line, sentence) for line in lines for sentence in sentences(line.text)]
    frequency = Counter(word for line in lines for word in _words(line.text))

    def score(sentence: str) -> tuple[bool, float]:
        words = _words(sentence)
        weight = sum(frequency[word] for word in words) / len(words) if len(words) > 1 else 0.0
        return not sentence.endswith("?"), weight

    distinct = {sentence.lower(): (line, sentence) for line, sentence in reversed(said)}
    best = sorted(distinct.values(), key=lambda pair: score(pair[1]), reverse=True)[:MOST_EXTRACTS]
    best.sort(key=lambda pair: said.index(pair))
    summary = "The user said: " + " ".join(sentence for _, sentence in best)
    facts = [
        Fact(f"On {line.date} the user said: {shortened(sentence, count)}", line.seq, line.seq)
        for line, sentence in best
        if score(sentence)[0]
    ]
    return Digest(shortened(summary, count), facts, "extractive")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def shortened(text: str, count: TokenCounter, limit: int = MOST_SUMMARY_TOKENS) -> str:
    """The text, cut after its last whole sentence (or word) within `limit` raw tokens if it is longer."""
    if count(text) <= limit:
        return text
    for joint, units in ((" ", sentences(text)), (" ", text.split()), ("", list(text[: 10 * limit]))):
        lengths = range(1, len(units) + 1)
        fitting = bisect_right(lengths, limit, key=lambda n: count(joint.join(units[:n])))
        if fitting:
            return joint.join(units[:fitting])
    return ""
