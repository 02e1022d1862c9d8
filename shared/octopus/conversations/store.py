"""The conversation log in PostgreSQL: the part that a turn reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from octopus.agents.store import agent_from
from octopus.cloud.database import Database
from octopus.cloud.queries import load_queries
from octopus.conversations.types import Conversation, Message, NewMessage, NewTurn, Turn, TurnContext, TurnDefaults
from octopus.errors import Conflict
from octopus.memory_config import STRIDES_PER_BUDGET

_SQL = load_queries(__package__)
_CONVERSATION: TypeAdapter[Conversation | None] = TypeAdapter(Conversation | None)
_TURN: TypeAdapter[Turn | None] = TypeAdapter(Turn | None)


class PostgresConversationLog:
    """Implements `octopus.conversations.ports.ConversationLog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_turn_context(
        self,
        tenant_id: str,
        user_id: str,
        agent_id: UUID,
        conversation_id: UUID | None,
        client_message_id: str,
        defaults: TurnDefaults,
    ) -> TurnContext:
        params = {
            "tenant_id": tenant_id,
            "user_id": user_id,
            "agent_id": agent_id,
            "conversation_id": conversation_id,
            "client_message_id": client_message_id,
            **asdict(defaults),
            "strides": STRIDES_PER_BUDGET,
        }
        async with self._database.transaction(tenant_id) as tx:
            (head,), history = await tx.each((_SQL["turn_head"], params), (_SQL["turn_history"], params))
        return TurnContext(
            agent=agent_from(head) if head["agent_id"] else None,
            conversation=_CONVERSATION.validate_python(head["conversation"]),
            history=[Message(**row) for row in history],
            earlier=_TURN.validate_python(head["earlier"]),
            token_factor=head["token_factor"],
        )

    async def open_conversation(
        self,
        tenant_id: str,
        user_id: str,
        agent_id: UUID,
        conversation_id: UUID,
        turn: NewTurn,
        message: NewMessage,
    ) -> bool:
        params = {
            "user_id": user_id,
            "agent_id": agent_id,
            **_claim(tenant_id, conversation_id, turn, message),
        }
        try:
            return await self._database.run(tenant_id, _SQL["open_conversation"], params) == 1
        except Conflict:
            return False

    async def claim_turn(
        self,
        tenant_id: str,
        conversation_id: UUID,
        expected_last_seq: int,
        turn: NewTurn,
        message: NewMessage,
    ) -> bool:
        params = {
            "expected_last_seq": expected_last_seq,
            **_claim(tenant_id, conversation_id, turn, message),
        }
        try:
            return await self._database.run(tenant_id, _SQL["claim_turn"], params) == 1
        except Conflict:
            return False

    async def reclaim_turn(self, tenant_id: str, turn: Turn, attempt_id: UUID, lease_s: int) -> bool:
        params = {
            "tenant_id": tenant_id,
            "conversation_id": turn.conversation_id,
            "turn_id": turn.turn_id,
            "attempt_id": attempt_id,
            "user_seq": turn.user_seq,
            "lease_s": lease_s,
        }
        async with self._database.transaction(tenant_id) as tx:
            if await tx.run(_SQL["reclaim_turn"], params) == 0:
                return False
            await tx.run(_SQL["drop_partial_answer"], params)
            await tx.run(_SQL["rewind_log"], params)
            await tx.run(_SQL["restart_turn"], params)
        return True

    async def renew_lease(
        self, tenant_id: str, conversation_id: UUID, turn_id: UUID, attempt_id: UUID, lease_s: int
    ) -> bool:
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "turn_id": turn_id,
            "attempt_id": attempt_id,
            "lease_s": lease_s,
        }
        return await self._database.run(tenant_id, _SQL["renew_lease"], params) == 1

    async def finish_turn(
        self,
        tenant_id: str,
        conversation_id: UUID,
        turn_id: UUID,
        attempt_id: UUID,
        *,
        completed: bool,
        stop_reason: str,
        messages: Sequence[NewMessage],
        trace: Mapping[str, Any],
    ) -> bool:
        rows = [
            {"ordinal": ordinal, **asdict(message), "message_id": str(message.message_id)}
            for ordinal, message in enumerate(messages, start=1)
        ]
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "turn_id": turn_id,
            "attempt_id": attempt_id,
            "status": "completed" if completed else "interrupted",
            "stop_reason": stop_reason,
            "messages": Jsonb(rows),
            "trace": Jsonb(dict(trace)),
        }
        async with self._database.transaction(tenant_id) as tx:
            if await tx.run(_SQL["finish_turn"], params) == 1:
                return True
            return await tx.one(_SQL["is_finished"], params) is not None

    async def turn_messages(self, tenant_id: str, turn_id: UUID) -> list[Message]:
        params = {"tenant_id": tenant_id, "turn_id": turn_id}
        rows = await self._database.all(tenant_id, _SQL["turn_messages"], params)
        return [Message(**row) for row in rows]

    async def messages_between(self, tenant_id: str, conversation_id: UUID, first: int, last: int) -> list[Message]:
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "first": first, "last": last}
        rows = await self._database.all(tenant_id, _SQL["messages_between"], params)
        return [Message(**row) for row in rows]

    async def extend_summary(
        self, tenant_id: str, conversation_id: UUID, summary: str, summary_tokens: int, through: int
    ) -> None:
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "summary": summary,
            "summary_tokens": summary_tokens,
            "through": through,
        }
        await self._database.run(tenant_id, _SQL["extend_summary"], params)


def _claim(tenant_id: str, conversation_id: UUID, turn: NewTurn, message: NewMessage) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "conversation_id": conversation_id,
        "turn_id": turn.turn_id,
        "attempt_id": turn.attempt_id,
        "client_message_id": turn.client_message_id,
        "requested_in": turn.requested_in,
        "lease_s": turn.lease_s,
        "message_id": message.message_id,
        "content": Jsonb(message.content),
        "token_count": message.token_count,
    }
