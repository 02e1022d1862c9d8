"""What the API offers of episodes: list, look at, search and delete."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from octopus.embedding import Embedder
from octopus.episodic.ports import EpisodeStore
from octopus.episodic.recall import EpisodicRecall
from octopus.episodic.types import Episode, Recollection
from octopus.errors import NotFound
from octopus.identity import Principal
from octopus.memory_config import MemoryConfig
from octopus.paging import Page, Place, first_page
from octopus.recall import Query, Scope
from octopus.relevance import Vector


class Episodes:
    """The caller's episodes; with the administrator's role, the tenant's."""

    def __init__(self, store: EpisodeStore, recall: EpisodicRecall, embedder: Embedder) -> None:
        self._store = store
        self._recall = recall
        self._embedder = embedder

    async def list(
        self,
        caller: Principal,
        *,
        agent_id: UUID | None = None,
        user_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Episode]:
        """Latest end first. Raises `Forbidden` for another's `user_id` without the role."""
        before = Place.of(cursor) if cursor else None
        owner = caller.reach(user_id)
        episodes = await self._store.list_episodes(caller.tenant_id, owner, agent_id, before, limit + 1)
        return first_page(episodes, limit, lambda episode: Place(episode.ended_at, episode.episode_id))

    async def get(self, caller: Principal, episode_id: UUID) -> Episode:
        episode = await self._store.get_episode(caller.tenant_id, caller.reach(), episode_id)
        if episode is None:
            raise NotFound(f"There is no episode {episode_id}.")
        return episode

    async def delete(self, caller: Principal, episode_id: UUID) -> None:
        """Delete the episode with its session: messages, facts, vectors, turns and feedback."""
        if not await self._store.delete_episode(caller.tenant_id, caller.reach(), episode_id):
            raise NotFound(f"There is no episode {episode_id}.")

    async def search(
        self,
        caller: Principal,
        *,
        agent_id: UUID,
        query: str,
        config: MemoryConfig,
        user_id: str | None = None,
    ) -> Recollection:
        """What a turn would recall for this message under `config`: of the caller's memory, or of `user_id`'s."""
        owner = caller.reach(user_id) or caller.user_id
        asked = Query(query, self._vector(query))
        try:
            return await self._recall.recall(Scope(caller.tenant_id, owner, agent_id), asked, config)
        finally:
            asked.cancel()

    async def _vector(self, text: str) -> Vector:
        vectors: Sequence[Vector] = await self._embedder.embed([text])
        return vectors[0]
