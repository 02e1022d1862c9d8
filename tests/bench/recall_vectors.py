"""Embeddings that are computed once: the shipped model takes minutes for a data set, a benchmark is run many times."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from octopus.cloud.minilm import MiniLmEmbedder
from octopus.relevance import Vector


class KeptEmbedder(MiniLmEmbedder):
    """The shipped embedder with its vectors kept in a file, by the hash of the text."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._kept = sqlite3.connect(file)
        self._kept.execute("create table if not exists vectors (key blob primary key, vector blob)")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        keys = [hashlib.sha256(f"{self.model}\0{text}".encode()).digest() for text in texts]
        found: dict[bytes, Vector | None] = {key: self._find(key) for key in set(keys)}
        new = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
        for key, vector in zip(new, await super().embed(list(new.values())), strict=True):
            found[key] = vector
            self._kept.execute("insert into vectors values (?, ?)", (key, np.array(vector, dtype=np.float32).tobytes()))
        self._kept.commit()
        return [kept for key in keys if (kept := found[key]) is not None]

    def _find(self, key: bytes) -> Vector | None:
        row = self._kept.execute("select vector from vectors where key = ?", (key,)).fetchone()
        return np.frombuffer(row[0], dtype=np.float32).tolist() if row else None
