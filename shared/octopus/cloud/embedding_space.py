"""The space that stored vectors belong to: one embedding model per space, never a silent mixture.

Whoever embeds with a model searches and writes in that model's space alone: stores and use cases are made for one
embedder and one `EmbeddingSpace`, and made anew when another model has become current (`octopus.cloud.wiring`). What
began before a change ends in its own space, whose vectors stay for a while; the database refuses to write there.
"""

from __future__ import annotations

import time

from octopus.cloud.database import PLATFORM, Database, Row
from octopus.cloud.queries import load_queries
from octopus.embedding import Embedder
from octopus.errors import EmbeddingSpaceMismatch

_SQL = load_queries(__package__, "embedding_space.sql")
TRUSTED_S = 5.0  # since the last look at what is current: nothing beside the minutes for which a space is kept


class EmbeddingSpace:
    """The space of one embedder."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self._params: Row = {"model": embedder.model, "dimensions": embedder.dimensions}
        self._space_id: int | None = None
        self._current: str | None = None
        self._looked_at = 0.0

    async def id(self) -> int:
        """Of this embedder's space, begun by the first caller of all.

        Raises `EmbeddingSpaceMismatch` when the stored vectors are of another model.
        """
        if self._space_id is None:
            async with self._database.transaction(PLATFORM) as tx:
                await tx.run(_SQL["begin_space"], self._params)
                space = await tx.one(_SQL["space_of_model"], self._params)
                current = await tx.one(_SQL["current_space"])
            if space is None:
                assert current is not None  # begun above, unless there was one
                raise EmbeddingSpaceMismatch(
                    f"Stored vectors are of {current['model']} ({current['dimensions']} dimensions), the embedder is "
                    f"{self._params['model']} ({self._params['dimensions']}): infra/deploy.md says how to change it."
                )
            self._space_id = space["space_id"]
        return self._space_id

    async def current_model(self) -> str:
        """The model whose space is current, this embedder's where there was none. Known for `TRUSTED_S` seconds."""
        if self._current is None or time.monotonic() > self._looked_at + TRUSTED_S:
            async with self._database.transaction(PLATFORM) as tx:
                current = await tx.one(_SQL["current_space"])
            self._current = current["model"] if current else self._params["model"]
            self._looked_at = time.monotonic()
        return self._current
