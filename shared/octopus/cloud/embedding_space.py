"""The space that stored vectors belong to: one embedding model per database, never a silent mixture."""

from __future__ import annotations

from octopus.cloud.database import PLATFORM, Database
from octopus.cloud.queries import load_queries
from octopus.embedding import Embedder
from octopus.errors import EmbeddingSpaceMismatch

_SQL = load_queries(__package__, "embedding_space.sql")


class EmbeddingSpace:
    """Gives the id of the current space, after making sure that it is the configured embedder's."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self._embedder = embedder
        self._space_id: int | None = None

    async def id(self) -> int:
        """The current space, begun by the first caller. Raises `EmbeddingSpaceMismatch` for another model's."""
        if self._space_id is None:
            params = {"model": self._embedder.model, "dimensions": self._embedder.dimensions}
            async with self._database.transaction(PLATFORM) as tx:
                await tx.run(_SQL["begin_space"], params)
                space = await tx.one(_SQL["current_space"])
            assert space is not None  # begun above, unless there was one
            if (space["model"], space["dimensions"]) != (self._embedder.model, self._embedder.dimensions):
                raise EmbeddingSpaceMismatch(
                    f"Stored vectors are of {space['model']} ({space['dimensions']} dimensions), the embedder is "
                    f"{self._embedder.model} ({self._embedder.dimensions}): configure the former, or start empty."
                )
            self._space_id = space["space_id"]
        return self._space_id
