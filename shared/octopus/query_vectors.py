"""The vectors of what was asked last: a question that is repeated, or tried in the console, is not embedded again."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from octopus.embedding import Embedder
from octopus.relevance import Calibration, Vector

REMEMBERED = 256  # questions; a vector of 384 dimensions takes 12 kB


class QueryEmbedder:
    """An embedder for questions, one at a time. Implements `octopus.embedding.Embedder`.

    A vector depends on the text and the model alone, so it is the same for every tenant. Of a text the SHA-256 is kept.
    """

    def __init__(self, embedder: Embedder, *, remembered: int = REMEMBERED) -> None:
        self._embedder = embedder
        self._remembered = remembered
        self._vectors: dict[bytes, Vector] = {}

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def max_tokens(self) -> int:
        return self._embedder.max_tokens

    @property
    def calibration(self) -> Calibration:
        return self._embedder.calibration

    def count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in order. Raises `octopus.errors.Unavailable`."""
        if len(texts) != 1:
            return await self._embedder.embed(texts)
        key = sha256(texts[0].encode("utf-8", "surrogatepass")).digest()
        vector = self._vectors.pop(key, None) or (await self._embedder.embed(texts))[0]
        self._vectors[key] = vector  # last, so that the least recently used is first
        while len(self._vectors) > self._remembered:
            del self._vectors[next(iter(self._vectors))]
        return [vector]
