"""What surrounds a passage and what is in it, as vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

from octopus.embedding import Embedder, embed_whole
from octopus.episodic.sentences import sentences
from octopus.ranking import DialogueWeights
from octopus.relevance import Vector

_LABEL = re.compile(r"[^:\n]{1,40}: ")
_SHORT = 4  # words; a shorter sentence says nothing alone
_WINDOW = {0: 2, 1: 2, 2: 1}  # weight by distance: the neighbours as much as the passage, those beyond half as much


@dataclass(frozen=True, slots=True)
class TraceVectors:
    """The vectors of one trace: its own, its context's and those of its sentences."""

    embedding: Vector
    context: Vector
    parts: Sequence[Vector]


async def trace_vectors(embedder: Embedder, texts: Sequence[str], spoken: Sequence[bool]) -> list[TraceVectors]:
    """For each trace of an episode, in order; `spoken` says which are of the dialogue."""
    sentences = [parts(text) for text in texts]
    vectors = iter(await embed_whole(embedder, [*texts, *chain.from_iterable(sentences)]))
    whole = list(islice(vectors, len(texts)))
    return [
        TraceVectors(vector, context, list(islice(vectors, len(within))))
        for vector, context, within in zip(whole, contexts(whole, spoken), sentences, strict=True)
    ]


def parts(text: str) -> list[str]:
    """The sentences of a text, each with the speaker of its line; none for a text of one sentence."""
    found: list[str] = []
    for line in text.splitlines():
        label = match[0] if (match := _LABEL.match(line)) else ""
        pieces: list[str] = []
        for sentence in sentences(line[len(label) :]):
            if pieces and len(sentence.split()) < _SHORT:
                pieces[-1] += f" {sentence}"
            else:
                pieces.append(sentence)
        found += [label + piece for piece in pieces]
    return found if len(found) > 1 else []


def contexts(vectors: Sequence[Vector], spoken: Sequence[bool]) -> list[Vector]:
    """For each trace of an episode, in order: a quarter of its vector and three quarters of the mean of its window.

    The window is of the dialogue, five passages at most; what was not `spoken` (a summary, a fact) stands alone. The
    inner product with a query is then the same mixture of cosines. Its length is not 1.
    """
    return [
        _context(vectors, [j for j in range(i - 2, i + 3) if j == i or _speaks(spoken, i, j)], i)
        for i in range(len(vectors))
    ]


def _speaks(spoken: Sequence[bool], i: int, j: int) -> bool:
    return 0 <= j < len(spoken) and spoken[i] and spoken[j]


def _context(vectors: Sequence[Vector], window: Sequence[int], i: int) -> Vector:
    own = DialogueWeights().part
    weights = [float(_WINDOW[abs(j - i)]) for j in window]
    shares = [
        (1 - own) * weight / sum(weights) + (own if j == i else 0.0) for j, weight in zip(window, weights, strict=True)
    ]
    columns = zip(*(vectors[j] for j in window), strict=True)
    return [sum(share * x for share, x in zip(shares, column, strict=True)) for column in columns]
