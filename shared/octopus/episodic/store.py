"""Episodes in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from uuid import UUID, uuid4

from pgvector import Vector as PgVector

from octopus.cloud.database import Database, Row
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.conversations.types import Message
from octopus.episodic.ports import Claim, Hit, NewEpisode
from octopus.episodic.types import Episode
from octopus.memory_config import MemoryConfig
from octopus.paging import Place
from octopus.recall import Scope
from octopus.relevance import Vector

_SQL = load_queries(__package__)
_MATCHES = 8  # traces per episode that recall reads; more would not fit the section's budget


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
                    }
                    for ordinal, trace in enumerate(episode.traces)
                ]
                await tx.many(_SQL["insert_trace"], traces)
        return True

    async def best_episodes(
        self, scope: Scope, text: str, vector: Vector, *, words_cosine: float, least_cosine: float, limit: int
    ) -> list[Hit]:
        params = {
            **_of(scope),
            "text": text,
            "vector": PgVector(vector),
            "words_cosine": words_cosine,
            "least_cosine": least_cosine,
            "limit": limit,
            "space_id": await self._space.id(),
            "matches": _MATCHES,
        }
        rows = await self._database.all(scope.tenant_id, _SQL["best_episodes"], params)
        return [_hit(list(group)) for _, group in groupby(rows, key=itemgetter("episode_id"))]

    async def latest_episodes(self, scope: Scope, limit: int) -> list[Hit]:
        rows = await self._database.all(scope.tenant_id, _SQL["latest_episodes"], {**_of(scope), "limit": limit})
        return [Hit(**row, cosine=None, has_words=False, relevant=False, matched=[]) for row in rows]

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


def _hit(rows: list[Row]) -> Hit:
    """An episode from its rows, one per trace that matched; a single one with nulls where none did."""
    first = rows[0]
    return Hit(
        episode_id=first["episode_id"],
        conversation_id=first["conversation_id"],
        started_at=first["started_at"],
        summary=first["summary"],
        archived=first["archived"],
        cosine=first["cosine"],
        has_words=first["has_words"],
        relevant=first["relevant"],
        matched=_matched((row["kind"], row["content"]) for row in rows if row["kind"]),
    )


def _matched(traces: Iterable[tuple[str, str]]) -> list[str]:
    by_kind: dict[str, list[str]] = {"summary": [], "fact": [], "passage": []}
    for kind, content in traces:
        by_kind[kind].append(content)
    return by_kind["fact"] or ([] if by_kind["summary"] else by_kind["passage"])
