"""What a turn needs from the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from octopus.conversations.types import Message, NewMessage, NewTurn, Turn, TurnContext, TurnDefaults


class ConversationLog(Protocol):
    """The durable log of one tenant's conversations. Every method is atomic."""

    async def load_turn_context(
        self,
        tenant_id: str,
        user_id: str,
        agent_id: UUID,
        conversation_id: UUID | None,
        client_message_id: str,
        defaults: TurnDefaults,
    ) -> TurnContext:
        """Agent, conversation, an earlier attempt of the same request, and as much history as the budget can hold."""
        ...

    async def open_conversation(
        self,
        tenant_id: str,
        user_id: str,
        agent_id: UUID,
        conversation_id: UUID,
        turn: NewTurn,
        message: NewMessage,
    ) -> bool:
        """Begin a conversation with its first turn. False when the same request was begun at the same time."""
        ...

    async def claim_turn(
        self,
        tenant_id: str,
        conversation_id: UUID,
        expected_last_seq: int,
        turn: NewTurn,
        message: NewMessage,
    ) -> bool:
        """Append the user's message and hold the conversation for this turn.

        False, and nothing written, when another turn holds it, the log has grown past `expected_last_seq`, or the
        conversation has ended.
        """
        ...

    async def reclaim_turn(self, tenant_id: str, turn: Turn, attempt_id: UUID, lease_s: int) -> bool:
        """Hold the conversation again for an interrupted turn and drop what it had half answered.

        False, and nothing changed, when the turn is held, has been completed, or is not the newest any more.
        """
        ...

    async def renew_lease(
        self, tenant_id: str, conversation_id: UUID, turn_id: UUID, attempt_id: UUID, lease_s: int
    ) -> bool:
        """False when the attempt has lost the conversation."""
        ...

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
        """Write the answer and the trace, and let the conversation go; writing them again changes nothing.

        False when the attempt had lost the conversation.
        """
        ...

    async def turn_messages(self, tenant_id: str, turn_id: UUID) -> list[Message]: ...
