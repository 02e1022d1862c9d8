"""Episodes in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from pgvector import HalfVector
from pgvector import Vector as PgVector

from octopus.cloud.database import Database, Row
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.conversations.types import Message
from octopus.episodic.ports import Claim, EpisodeHead, LaterFact, NewEpisode, TraceHit
from octopus.episodic.types import Episode
from octopus.memory_config import MemoryConfig
from octopus.paging import Place
from octopus.ranking import DialogueWeights
from octopus.recall import Scope
from octopus.relevance import Vector

_SQL = load_queries(__package__)
_WEIGHTS = DialogueWeights()
_HEAD = ("episode_id", "conversation_id", "started_at", "summary", "archived")
_TRACE = ("ordinal", "kind", "content", "cosine", "share", "has_words")


class PostgresEpisodeStore:
    """Implements `octopus.episodic.ports.EpisodeStore`."""

    def __init__(self, database: Database, space: EmbeddingSpace) -> None:
        self._database = database
        self._space = space

    async def claim_session(
        self, tenant_id: str, conversation_id: UUID, last_seq: int, worker: str, lease_s: int
    ) -> Claim | None:
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "last_seq": last_seq,
            "worker": worker,
            "lease_s": lease_s,
        }
        row = await self._database.one(tenant_id, _SQL["claim_session"], params)
        return Claim(config=MemoryConfig(**row.pop("memory_config")), **row) if row else None

    async def release_session(self, tenant_id: str, conversation_id: UUID, worker: str) -> None:
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "worker": worker}
        await self._database.run(tenant_id, _SQL["release_session"], params)

    async def session_log(self, tenant_id: str, conversation_id: UUID) -> list[Message]:
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        return [Message(**row) for row in await self._database.all(tenant_id, _SQL["session_log"], params)]

    async def write_episode(self, tenant_id: str, claim: Claim, worker: str, episode: NewEpisode | None) -> bool:
        session = {"tenant_id": tenant_id, "conversation_id": claim.conversation_id, "worker": worker}
        space_id = await self._space.id()
        async with self._database.transaction(tenant_id) as tx:
            if await tx.run(_SQL["settle_session"], session) == 0:
                return False
            if episode is not None:
                head = {
                    **session,
                    "episode_id": uuid4(),
                    "summary": episode.summary,
                    "summary_source": episode.summary_source,
                    "message_count": episode.message_count,
                    "started_at": claim.started_at,
                }
                await tx.run(_SQL["insert_episode"], head)
                traces = [
                    {
                        **head,
                        "ordinal": ordinal,
                        "agent_id": claim.agent_id,
                        "user_id": claim.user_id,
                        "kind": trace.kind,
                        "content": trace.content,
                        "first_seq": trace.first_seq,
                        "last_seq": trace.last_seq,
                        "token_count": trace.token_count,
                        "space_id": space_id,
                        "embedding": PgVector(trace.embedding),
                        "context": PgVector(trace.context),
                        "parts": [PgVector(part) for part in trace.parts],
                    }
                    for ordinal, trace in enumerate(episode.traces)
                ]
                await tx.many(_SQL["insert_trace"], traces)
                await tx.run(_SQL["index_episode"], head)
        return True

    async def best_traces(self, scope: Scope, text: str, vector: Vector, episodes: int) -> list[TraceHit]:
        params = {
            **_of(scope),
            "text": text,
            "vector": PgVector(vector),
            "half": HalfVector(vector),  # a cast would be made anew for each row
            "space_id": await self._space.id(),
            "episodes": episodes,
            "session_weight": _WEIGHTS.session,
            "share_weight": _WEIGHTS.share,
            "part_weight": _WEIGHTS.part,
            "candidates": _WEIGHTS.candidates,
        }
        rows = await self._database.all(scope.tenant_id, _SQL["best_traces"], params)
        return [TraceHit(_head(row), **{name: row[name] for name in _TRACE}) for row in rows]

    async def later_facts(
        self, scope: Scope, vector: Vector, facts: Sequence[tuple[UUID, int]], least_cosine: float
    ) -> list[LaterFact]:
        params = {
            **_of(scope),
            "space_id": await self._space.id(),
            "vector": PgVector(vector),
            "episodes": [episode_id for episode_id, _ in facts],
            "ordinals": [ordinal for _, ordinal in facts],
            "least_cosine": least_cosine,
        }
        rows = await self._database.all(scope.tenant_id, _SQL["later_facts"], params)
        return [
            LaterFact((row["of_episode"], row["of_ordinal"]), _head(row), row["content"], row["cosine"]) for row in rows
        ]

    async def latest_episodes(self, scope: Scope, limit: int) -> list[EpisodeHead]:
        rows = await self._database.all(scope.tenant_id, _SQL["latest_episodes"], {**_of(scope), "limit": limit})
        return [_head(row) for row in rows]

    async def list_episodes(
        self, tenant_id: str, user_id: str | None, agent_id: UUID | None, before: Place | None, limit: int
    ) -> list[Episode]:
        params = {
            "tenant_id": tenant_id,
            "user_id": user_id,
            "agent_id": agent_id,
            "before_at": before.at if before else None,
            "before_id": before.id if before else None,
            "limit": limit,
        }
        return [Episode(**row) for row in await self._database.all(tenant_id, _SQL["list_episodes"], params)]

    async def get_episode(self, tenant_id: str, user_id: str | None, episode_id: UUID) -> Episode | None:
        params = {"tenant_id": tenant_id, "user_id": user_id, "episode_id": episode_id}
        row = await self._database.one(tenant_id, _SQL["get_episode"], params)
        return Episode(**row) if row else None

    async def delete_episode(self, tenant_id: str, user_id: str | None, episode_id: UUID) -> bool:
        params = {"tenant_id": tenant_id, "user_id": user_id, "episode_id": episode_id}
        async with self._database.transaction(tenant_id) as tx:
            session = await tx.one(_SQL["delete_episode"], params)
            if session is None:
                return False
            await tx.run(_SQL["delete_session"], {"tenant_id": tenant_id, **session})
        return True


def _of(scope: Scope) -> dict[str, object]:
    return {"tenant_id": scope.tenant_id, "agent_id": scope.agent_id, "user_id": scope.user_id}


def _head(row: Row) -> EpisodeHead:
    return EpisodeHead(**{name: row[name] for name in _HEAD})
