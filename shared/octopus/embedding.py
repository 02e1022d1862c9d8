"""The port through which the memories turn text into vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from octopus.relevance import Calibration, Vector


class Embedder(Protocol):
    """An embedding model. Vectors are of unit length, so that inner product is cosine."""

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Text beyond this many tokens is not seen by the model: chunks must not be longer."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of this model in the text itself; `max_tokens` includes up to two marks around it."""
        ...

    @property
    def calibration(self) -> Calibration: ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in order. Raises `octopus.errors.Unavailable` when the provider does not answer."""
        ...


async def embed_whole(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    """One unit vector per text, in order; each different text is embedded once.

    Of a text that was cut for a model that sees more it is the mean of the vectors of its pieces.
    """
    pieces = {text: _pieces(embedder, text) for text in texts}
    different = list(dict.fromkeys(piece for of_text in pieces.values() for piece in of_text))
    vectors = dict(zip(different, await embedder.embed(different), strict=True))
    return [_mean([vectors[piece] for piece in pieces[text]]) for text in texts]


def _pieces(embedder: Embedder, text: str) -> list[str]:
    """The text if the model sees it whole, else its halves, cut at a blank near the middle if there is one."""
    if len(text) < 2 or embedder.count_tokens(text) + 2 <= embedder.max_tokens:
        return [text]
    middle = len(text) // 2
    cut = text.rfind(" ", 1, middle) + 1 or middle
    return _pieces(embedder, text[:cut]) + _pieces(embedder, text[cut:])


def _mean(vectors: Sequence[Vector]) -> Vector:
    if len(vectors) == 1:
        return vectors[0]
    total = [sum(column) for column in zip(*vectors, strict=True)]
    length = math.sqrt(sum(x * x for x in total))
    return [x / length for x in total]
