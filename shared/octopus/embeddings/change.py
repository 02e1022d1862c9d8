"""Another embedding model for all memories: made beside the old vectors, then current in one moment.

`start` puts every document, episode and procedure on a list, and the database adds what is written from then on. `work`
takes them off and gives each text a vector of the coming model. When the list is empty while nobody writes, the coming
model is the current one. The old vectors stay for whoever still asks in their space, and are dropped after that. A
worker that dies loses what it was embedding at that moment; its items are taken again when their lease has ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from octopus.embedding import Embedder
from octopus.embeddings.ports import ChangeStore, MemoryVectors
from octopus.embeddings.types import Item, Progress, Space
from octopus.errors import Conflict, NotFound, OctopusError, Unavailable

log = logging.getLogger(__name__)

LEASE_S = 300.0  # the longest that a worker runs
GRACE_S = 900.0  # a turn takes ten minutes at most
_TAKEN = 10  # items at a time
_FAILURES = 3  # in a row: it is not the items, it is the embedder


class EmbeddingChange:
    """Changes the embedding model of the whole database; for operators."""

    def __init__(
        self,
        store: ChangeStore,
        memories: Sequence[MemoryVectors],
        embedder_of: Callable[[str], Embedder],
        *,
        lease_s: float = LEASE_S,
        grace_s: float = GRACE_S,
    ) -> None:
        self._store = store
        self._memories = {part.memory: part for part in memories}
        self._embedder_of = embedder_of
        self._lease_s = lease_s
        self._grace_s = grace_s

    async def progress(self) -> Progress:
        return await self._store.progress()

    async def start(self, embedder: Embedder) -> Progress:
        """Begin the change to this embedder, or go on with one that was cancelled; also the way back after a change.

        Raises `Unavailable` when the embedder does not answer, `Conflict` when there is nothing to begin.
        """
        await embedder.embed(["Can this model be used from here?"])
        outcome = await self._store.begin(embedder.model, embedder.dimensions)
        progress = await self._store.progress()
        if outcome == "busy":
            raise Conflict(f"The change to {progress.coming} is under way: wait for its end, or cancel it.")
        if outcome == "current":
            raise Conflict(f"{embedder.model} is the model in use.")
        if outcome == "dropping":
            raise Conflict(f"The old vectors of {embedder.model} are being dropped: try again in a few minutes.")
        if outcome == "empty":
            raise Conflict("There are no vectors yet: configure the model instead.")
        return progress

    async def cancel(self) -> Progress:
        """Stop the change; what it has embedded is dropped after a while. Raises `NotFound` when there is none."""
        if not await self._store.cancel():
            raise NotFound("No change of the embedding model is under way.")
        return await self._store.progress()

    async def work(self, until: float) -> Progress:
        """Go on until `until` (of `time.monotonic`) or the end. Raises `Unavailable` when the embedder fails."""
        coming = await self._store.coming()
        if coming is not None:
            try:
                await self._embed(coming, until)
            except Unavailable:
                if await self._store.coming() == coming:
                    raise  # else it was cancelled meanwhile, and nothing can be written into it any more
        for space in await self._store.left_for(self._grace_s):
            await self._drop(space, until)
        return await self._store.progress()

    async def _embed(self, space: Space, until: float) -> None:
        embedder = self._embedder_of(space.model)

        async def embed(item: Item) -> bool:
            return await self._memories[item.memory].embed(item, space.space_id, embedder, until)

        while time.monotonic() < until:
            found = await self._each(space, until, embed)
            if await self._store.switch(space.space_id):
                log.info("vectors of %s are searched from now on", space.model)
                return
            if not found:
                return  # others are at what is left

    async def _drop(self, space: Space, until: float) -> None:
        async def drop(item: Item) -> bool:
            await self._memories[item.memory].drop(item, space.space_id)
            return True

        await self._each(space, until, drop)
        if await self._store.forget(space.space_id):
            log.info("no vectors of %s are left", space.model)

    async def _each(self, space: Space, until: float, step: Callable[[Item], Awaitable[bool]]) -> int:
        """Take a step with every item of the space that can be had until then; how many there were."""
        found = failed = 0
        while time.monotonic() < until and (items := await self._store.take(space.space_id, _TAKEN, self._lease_s)):
            found += len(items)
            for n, item in enumerate(items):
                try:
                    done = time.monotonic() < until and await step(item)
                except OctopusError as error:
                    # It is taken again when its lease ends, and does not keep the others waiting.
                    log.exception("%s %s could not be done", item.memory, item.item_id)
                    failed += isinstance(error, Unavailable)
                    if failed == _FAILURES:
                        for rest in items[n + 1 :]:
                            await self._store.settle(space.space_id, rest, done=False)
                        raise
                    continue
                await self._store.settle(space.space_id, item, done=done)
                failed = 0
        return found
