"""Sessions as a turn leaves them, a model that summarises by script, and a bus that remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID, uuid4

from pydantic import BaseModel, ValidationError

from octopus.conversations.ports import ConversationLog
from octopus.conversations.types import NewMessage, NewTurn, text_block
from octopus.errors import ModelReplyInvalid, Unavailable
from octopus.recall import Scope

T = TypeVar("T", bound=BaseModel)
Exchange = tuple[str, str]


async def hold_session(log: ConversationLog, scope: Scope, exchanges: Sequence[Exchange]) -> UUID:
    """A conversation with these questions and answers, open, with no turn under way."""
    conversation = uuid4()
    for n, (question, answer) in enumerate(exchanges):
        turn = NewTurn(uuid4(), f"{conversation}-{n}", conversation if n else None, lease_s=30)
        asked = NewMessage(uuid4(), "user", [text_block(question)], 10)
        who = scope.tenant_id, scope.user_id, scope.agent_id
        if n == 0:
            assert await log.open_conversation(*who, conversation, turn, asked)
        else:
            assert await log.claim_turn(scope.tenant_id, conversation, 2 * n, turn, asked)
        assert await log.finish_turn(
            scope.tenant_id,
            conversation,
            turn.turn_id,
            turn.attempt_id,
            completed=True,
            stop_reason="end_turn",
            messages=[NewMessage(uuid4(), "assistant", [text_block(answer)], 10, "end_turn")],
            trace={},
        )
    return conversation


class ScriptedModel:
    """Answers structured calls with `reply(schema, text)`, and keeps what it was asked."""

    def __init__(self, reply: Callable[[type[BaseModel], str], Mapping[str, Any]]) -> None:
        self._reply = reply
        self.asked: list[str] = []

    async def structured(
        self, *, model: str | None, system: str, messages: list[dict[str, Any]], schema: type[T], max_tokens: int
    ) -> T:
        text = messages[-1]["content"][0]["text"]
        self.asked.append(text)
        try:
            return schema.model_validate(self._reply(schema, text))
        except ValidationError as exc:
            raise ModelReplyInvalid() from exc


class RecordingBus:
    """Takes events, or refuses them while it is `broken`."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.broken = False

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        if self.broken:
            raise Unavailable()
        assert detail_type == "SessionEnded"
        self.events.append(detail)
