"""Sessions in PostgreSQL: looking at them, and ending them."""

from __future__ import annotations

from typing import Any, LiteralString
from uuid import UUID

from octopus.cloud.database import Database
from octopus.cloud.queries import load_queries
from octopus.conversations.sessions import Feedback, Session, SessionEnded
from octopus.conversations.types import EndReason, Message
from octopus.paging import Place

_SQL = load_queries(__package__, "sessions.sql")


class PostgresSessionStore:
    """Implements `octopus.conversations.sessions.SessionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_sessions(
        self, tenant_id: str, user_id: str | None, agent_id: UUID | None, before: Place | None, limit: int
    ) -> list[Session]:
        params = {
            "tenant_id": tenant_id,
            "user_id": user_id,
            "agent_id": agent_id,
            "before_at": before.at if before else None,
            "before_id": before.id if before else None,
            "limit": limit,
        }
        return [Session(**row) for row in await self._database.all(tenant_id, _SQL["list_sessions"], params)]

    async def get_session(self, tenant_id: str, user_id: str | None, conversation_id: UUID) -> Session | None:
        return await self._session(_SQL["get_session"], tenant_id, conversation_id, user_id=user_id)

    async def session_messages(
        self, tenant_id: str, conversation_id: UUID, after_seq: int, limit: int
    ) -> list[Message]:
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "after_seq": after_seq,
            "limit": limit,
        }
        rows = await self._database.all(tenant_id, _SQL["session_messages"], params)
        return [Message(**row) for row in rows]

    async def end_session(
        self, tenant_id: str, user_id: str | None, conversation_id: UUID, reason: EndReason
    ) -> Session | None:
        return await self._session(_SQL["end_session"], tenant_id, conversation_id, user_id=user_id, reason=reason)

    async def end_abandoned_session(self, tenant_id: str, conversation_id: UUID, last_seq: int) -> Session | None:
        return await self._session(_SQL["end_abandoned_session"], tenant_id, conversation_id, last_seq=last_seq)

    async def request_end(self, tenant_id: str, conversation_id: UUID, turn_id: UUID) -> bool:
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "turn_id": turn_id}
        return await self._database.run(tenant_id, _SQL["request_end"], params) == 1

    async def end_requested_session(self, tenant_id: str, conversation_id: UUID) -> Session | None:
        return await self._session(_SQL["end_requested_session"], tenant_id, conversation_id)

    async def note_announcement(self, tenant_id: str, conversation_id: UUID) -> SessionEnded | None:
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        row = await self._database.one(tenant_id, _SQL["note_announcement"], params)
        return SessionEnded(**row) if row else None

    async def put_feedback(
        self,
        tenant_id: str,
        user_id: str,
        conversation_id: UUID,
        message_id: UUID,
        rating: int,
        comment: str | None,
    ) -> Feedback | None:
        params = {
            "tenant_id": tenant_id,
            "user_id": user_id,
            "conversation_id": conversation_id,
            "message_id": message_id,
            "rating": rating,
            "comment": comment,
        }
        row = await self._database.one(tenant_id, _SQL["put_feedback"], params)
        return Feedback(**row) if row else None

    async def _session(
        self, query: LiteralString, tenant_id: str, conversation_id: UUID, **params: Any
    ) -> Session | None:
        row = await self._database.one(
            tenant_id, query, {"tenant_id": tenant_id, "conversation_id": conversation_id, **params}
        )
        return Session(**row) if row else None
