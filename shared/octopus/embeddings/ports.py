"""What a change of the embedding model needs from the outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from octopus.embedding import Embedder
from octopus.embeddings.types import Item, MemoryName, Progress, Space

Beginning = Literal["begun", "busy", "current", "dropping", "empty"]


class MemoryVectors(Protocol):
    """The vectors of one memory."""

    @property
    def memory(self) -> MemoryName: ...

    async def embed(self, item: Item, space_id: int, embedder: Embedder, until: float) -> bool:
        """Give the item's texts the vectors of a coming space that they lack; again where a last attempt stopped.

        False when it has to be taken again: `until` (of `time.monotonic`) came first, or it has changed meanwhile.
        Raises `Unavailable`, also when the space is not coming (any more).
        """
        ...

    async def drop(self, item: Item, space_id: int) -> None:
        """Delete the item's vectors of a space that has been left."""
        ...


class ChangeStore(Protocol):
    """Spaces, and what is left to do for them. Every method is atomic."""

    async def progress(self) -> Progress: ...

    async def begin(self, model: str, dimensions: int) -> Beginning:
        """Have every item of every tenant embedded by the model.

        `busy`: another change is under way; `current`: the model is in use; `dropping`: somebody is dropping vectors
        that it made before; `empty`: no model is in use yet.
        """
        ...

    async def cancel(self) -> bool:
        """Leave the coming space. False when there is none."""
        ...

    async def coming(self) -> Space | None: ...

    async def take(self, space_id: int, limit: int, lease_s: float) -> list[Item]:
        """Items that nobody is at, for that long."""
        ...

    async def settle(self, space_id: int, item: Item, *, done: bool) -> None:
        """Forget the item, unless it got another text since it was taken; if not `done`, let others take it."""
        ...

    async def switch(self, space_id: int) -> bool:
        """Make the coming space the current one, if nothing is left to do and nothing is being written."""
        ...

    async def left_for(self, seconds: float) -> Sequence[Space]:
        """Spaces that were left that long ago; each item of them has vectors to be dropped, or none has any more."""
        ...

    async def forget(self, space_id: int) -> bool:
        """Note that nothing of the space is left to be dropped; False if that is not so."""
        ...
