"""A deterministic embedder: texts that share words are close, and nothing else is."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path

from octopus.relevance import Calibration, Vector


class WordEmbedder:
    """Hashes each word into one of `dimensions` axes. Cosine is the share of common words."""

    model = "words"
    dimensions = 256
    max_tokens = 256
    calibration = Calibration(((-1.0, 0.0), (0.0, 0.01), (1.0, 1.0)))

    def __init__(self) -> None:
        self.texts: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(re.findall(r"\w+", text))

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.texts.extend(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        vector = [0.0] * self.dimensions
        for word in re.findall(r"\w+", text.lower()) or ["<empty>"]:
            digest = hashlib.blake2b(word.encode("utf-8"), digest_size=4).digest()
            vector[int.from_bytes(digest, "big") % self.dimensions] += 1.0
        norm = math.sqrt(sum(x * x for x in vector))
        return [x / norm for x in vector]


class LoggingEmbedder(WordEmbedder):
    """As slow as a real one, and gives every text that it was paid for a line in the file EMBEDDED_LOG."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await asyncio.sleep(0.002 * len(texts))
        self.log(texts)
        return await super().embed(texts)

    def log(self, texts: Sequence[str]) -> None:
        with Path(os.environ["EMBEDDED_LOG"]).open("a") as log:
            log.writelines(f"{text!r}\n" for text in texts)
