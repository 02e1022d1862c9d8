"""What is known of a running turn's answer: the messages to keep, and the account of how they came about."""

from __future__ import annotations

import time
from uuid import UUID, uuid4

from octopus.conversations.types import Block, NewMessage, Role, text_block, text_of
from octopus.model import Usage
from octopus.text import made_storable
from octopus.turn_types import PreparedTurn
from octopus.working.trace import Timings, ToolRecord, TurnTrace
from octopus.working.types import content_tokens


class AnswerRecord:
    """Grows while the turn runs; at any moment it holds all that has been said so far."""

    def __init__(self, turn: PreparedTurn) -> None:
        self._turn = turn
        self.messages: list[NewMessage] = []
        self.tools: list[ToolRecord] = []
        self.usage = Usage()
        self._said = ""
        self._first_token_ms: float | None = None

    def say(self, text: str) -> str:
        """Note a piece of the message that is being streamed; the piece as it can be stored."""
        text = made_storable(text)
        if self._first_token_ms is None:
            self._first_token_ms = self._elapsed_ms()
        self._said += text
        return text

    def add(self, role: Role, content: list[Block], stop_reason: str | None) -> None:
        """Note a complete message; it takes the place of the pieces that it was streamed in."""
        self._said = ""
        if content:
            tokens = content_tokens(self._turn.tokens.raw, content)
            self.messages.append(NewMessage(uuid4(), role, content, tokens, stop_reason))

    def close(self, stop_reason: str) -> None:
        """Make a message of what was said before the turn broke off, if anything was."""
        if self._said.strip():
            self.add("assistant", [text_block(self._said)], stop_reason)

    @property
    def tokens(self) -> int:
        """Raw tokens of the messages so far."""
        return sum(message.token_count for message in self.messages)

    @property
    def message_id(self) -> UUID | None:
        """The message that holds the answer; None while there is none."""
        answers = (m for m in reversed(self.messages) if m.role == "assistant" and text_of(m.content))
        return next((answer.message_id for answer in answers), None)

    def trace(self, stop_reason: str) -> TurnTrace:
        """The turn's account as it stands."""
        turn = self._turn
        agent = turn.given.agent
        return TurnTrace(
            turn_id=turn.turn_id,
            conversation_id=turn.conversation_id,
            agent_id=agent.agent_id,
            agent_version=agent.version,
            model=turn.model,
            layout=agent.memory_config.context_layout,
            stop_reason=stop_reason,
            budget=turn.memory.budget,
            sections=turn.memory.sections,
            pruning=turn.memory.pruning,
            stores=turn.stores,
            usage=self.usage,
            timings=Timings(
                round(turn.loaded_ms, 2),
                round(turn.read_ms, 2),
                round(turn.assemble_ms, 2),
                self._first_token_ms,
                self._elapsed_ms(),
            ),
            token_factor=turn.tokens.factor,
            tools=self.tools,
        )

    def _elapsed_ms(self) -> float:
        return round((time.perf_counter() - self._turn.arrived) * 1000, 2)
