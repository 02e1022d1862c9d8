"""What is connected to what: the one place where ports meet adapters.

One module for each room, and one for everything outside. Nothing connects at import; each part is made when first asked
for and lives as long as the execution environment.
"""

from __future__ import annotations

from functools import cache

from octopus.cloud.wiring.reembed import Reembed
from octopus.cloud.wiring.turns import Turns
from octopus.settings import settings

# What does not know the embedding model, and is worth keeping.
_OUTSIDE = {"settings", "database", "sweep_database", "model", "bus", "verifier", "document_reader"}


class Services(Turns, Reembed):
    """Everything that an entry point may call."""

    async def follow_space(self) -> None:
        """Make everything for the embedding model that is current now, if it is another one; first thing in a request.

        What began with the former one ends with it, in its space. Raises `DatabaseUnavailable`, and
        `EmbeddingSpaceMismatch` for a model that cannot be run here.
        """
        model = await self.space.current_model()
        if model != self.embedder.model:
            embedder = self.embedder_of(model)
            for made in vars(self).keys() - _OUTSIDE:
                del vars(self)[made]
            vars(self)["embedder"] = embedder


@cache
def services() -> Services:
    """The services of this execution environment."""
    return Services(settings())
