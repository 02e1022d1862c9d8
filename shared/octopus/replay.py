"""A request that comes again: what was answered is streamed once more, and not asked of the model again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from octopus.conversations.ports import ConversationLog
from octopus.conversations.types import Turn, TurnContext, text_of
from octopus.errors import Conflict
from octopus.turn_events import Token, TurnEnd, TurnEvent, TurnStart
from octopus.turn_types import TurnRequest


async def replay(
    log: ConversationLog, tenant_id: str, context: TurnContext, request: TurnRequest
) -> AsyncIterator[TurnEvent] | None:
    """The events of an earlier answer to the same request; None when it has to be answered (again).

    A turn that was interrupted is answered again, unless the conversation has gone on since or has ended.
    """
    earlier, conversation = context.earlier, context.conversation
    assert earlier
    assert conversation
    messages = await log.turn_messages(tenant_id, earlier.turn_id)
    if not messages or text_of(messages[0].content) != request.message:
        raise used_already(request)
    if earlier.status != "completed" and messages[-1].seq == conversation.last_seq:
        if conversation.status == "active":
            return None
        raise Conflict("The conversation ended before this message was answered; send it with a new message_id.")
    answers = [message for message in messages if message.role == "assistant"]
    return _replayed(
        earlier,
        "".join(text_of(message.content) for message in answers),
        answers[-1].message_id if answers else None,
    )


def used_already(request: TurnRequest) -> Conflict:
    """What to raise for a `message_id` that stands for another message."""
    return Conflict(
        f"message_id: '{request.message_id}' was used for another message; use a new one for each message.",
        field="message_id",
    )


async def _replayed(turn: Turn, text: str, message_id: UUID | None) -> AsyncIterator[TurnEvent]:
    yield TurnStart(turn.turn_id, turn.conversation_id, replayed=True)
    if text:
        yield Token(text)
    usage = (turn.trace or {}).get("usage", {})
    yield TurnEnd(message_id, turn.stop_reason or "interrupted", usage)
