"""Index all documents of an agent anew, for another way of cutting or reading: a job that survives its workers.

A job is a few messages on the queue, its lanes: so many documents are worked on at a time, and new uploads do not wait
behind all of them. A lane takes a document, indexes it, and puts itself on the queue again until none is left. If its
worker dies the queue delivers the lane again. What recall sees of a document stays until the new chunks are complete.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID, uuid4

from octopus.errors import NotFound
from octopus.identity import Principal, Role
from octopus.semantic.ingest import IngestDocument
from octopus.semantic.types import Lane, QueuedDocument, ReindexJob

_LANES = 5


class ReindexStore(Protocol):
    """Jobs of one tenant. Every method is atomic."""

    async def has_agent(self, tenant_id: str, agent_id: UUID) -> bool: ...

    async def start_reindex(self, tenant_id: str, agent_id: UUID, job_id: UUID, requested_by: str) -> None:
        """Begin a job with all documents of the agent; an earlier job loses those that it has not done."""
        ...

    async def latest_reindex(self, tenant_id: str, agent_id: UUID) -> ReindexJob | None: ...

    async def take_for_reindex(self, lane: Lane) -> QueuedDocument | None:
        """The document that the lane took last and has not finished, else one that no lane has taken."""
        ...

    async def finish_reindex(self, lane: Lane, document_id: UUID, *, failed: bool) -> None: ...


class LaneQueue(Protocol):
    """The queue of documents, for lanes."""

    async def put_lanes(self, lanes: list[Lane]) -> None:
        """Raises `Unavailable`, some of them taken perhaps, when the queue fails."""
        ...


class ReindexAgent:
    """Starts jobs and says how far they are; for administrators."""

    def __init__(self, store: ReindexStore, queue: LaneQueue) -> None:
        self._store = store
        self._queue = queue

    async def start(self, caller: Principal, agent_id: UUID) -> ReindexJob:
        """A job for every document that the agent has now. If the queue fails, ask again: no document is lost."""
        caller.require(Role.ADMIN)
        if not await self._store.has_agent(caller.tenant_id, agent_id):
            raise NotFound(f"There is no agent {agent_id}.")
        job_id = uuid4()
        await self._store.start_reindex(caller.tenant_id, agent_id, job_id, caller.user_id)
        job = await self.progress(caller, agent_id)
        await self._queue.put_lanes(
            [Lane(caller.tenant_id, job_id, number) for number in range(min(_LANES, job.total))]
        )
        return job

    async def progress(self, caller: Principal, agent_id: UUID) -> ReindexJob:
        """The last job of the agent. Raises `NotFound` when there was none."""
        caller.require(Role.ADMIN)
        job = await self._store.latest_reindex(caller.tenant_id, agent_id)
        if job is None:
            raise NotFound("The documents of this agent have never been reindexed as a whole.")
        return job


class ReindexLane:
    """What a worker does for a lane."""

    def __init__(self, store: ReindexStore, queue: LaneQueue, ingest: IngestDocument) -> None:
        self._store = store
        self._queue = queue
        self._ingest = ingest

    async def step(self, lane: Lane, until: float | None = None) -> bool:
        """Index the next document of the lane; False when there is none. Raises `Unavailable` like `ingest`."""
        document = await self._store.take_for_reindex(lane)
        if document is None:
            return False
        outcome = await self._ingest.attempt(document.object_key, anew=True, until=until)
        if outcome != "unfinished":
            await self._store.finish_reindex(lane, document.document_id, failed=outcome == "failed")
        await self._queue.put_lanes([lane])
        return True
