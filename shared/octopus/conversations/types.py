"""Conversations, messages and turns.

A conversation is one session. It holds turns; a turn holds the user's message, every tool call with its results, and
the assistant's answer. Message content is a list of blocks in the shape of the Messages API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

from octopus.agents.types import Agent

Block = dict[str, Any]
Role = Literal["user", "assistant", "tool"]
TurnStatus = Literal["running", "completed", "interrupted"]
EndReason = Literal["UserClosed", "AgentClosed", "Timeout", "ErrorClosed"]


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def text_of(content: list[Block]) -> str:
    """The text of a message, without tool calls and results."""
    return "".join(block["text"] for block in content if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the log. `seq` counts from 1 without gaps; ordering is by it, never by clock."""

    seq: int
    message_id: UUID
    turn_id: UUID
    role: Role
    content: list[Block]
    token_count: int
    stop_reason: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A line that is about to be written; the store gives it its `seq`."""

    message_id: UUID
    role: Role
    content: list[Block]
    token_count: int
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session of one user with one agent.

    `total_tokens` are the raw stored counts of the whole log. `summary` is the running summary of the turns up to seq
    `summary_through` that pruning has folded away.
    """

    conversation_id: UUID
    agent_id: UUID
    user_id: str
    status: Literal["active", "ended"]
    last_seq: int
    total_tokens: int
    turn_count: int
    summary: str | None
    summary_tokens: int
    summary_through: int
    started_at: datetime
    last_message_at: datetime
    ended_at: datetime | None
    end_reason: EndReason | None


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange. `user_seq` is the place of the user's message in the log."""

    turn_id: UUID
    conversation_id: UUID
    agent_id: UUID
    user_id: str
    user_seq: int
    status: TurnStatus
    stop_reason: str | None
    trace: Mapping[str, Any] | None
    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn that is about to begin.

    `client_message_id` with `requested_in` (the conversation that the request named, if any) is the natural key that
    makes a retry find the turn instead of beginning another. The turn holds its conversation for `lease_s` seconds,
    renewed while it lives; `attempt_id` tells this attempt from a later one, which may take over from a dead one.
    """

    turn_id: UUID
    client_message_id: str
    requested_in: UUID | None
    lease_s: int
    attempt_id: UUID = field(default_factory=uuid4)


@dataclass(frozen=True, slots=True)
class TurnDefaults:
    """What holds for an agent that has not chosen; `token_factor` for a model of which none has been learned yet."""

    model: str
    token_factor: float
    max_working_memory_tokens: int
    output_reserve_tokens: int
    min_history_turns: int


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What is known before a turn: one round trip.

    `history` is the newest part of the log, oldest first, with every turn that `octopus.working.pruning` can keep if
    nothing else takes of the budget. `earlier` is the turn that the same request has already begun, if any.
    """

    agent: Agent | None
    conversation: Conversation | None
    history: list[Message]
    earlier: Turn | None
    token_factor: float
