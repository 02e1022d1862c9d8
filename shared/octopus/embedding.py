"""The port through which the memories turn text into vectors."""

from __future__ import annotations

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
