"""The trace of a turn: ids, scores, token counts and timings; never a word of what was said or recalled.

It is written with the answer, and the Context Inspector joins it with what is stored now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from octopus.model import Usage
from octopus.working.types import Budget, Pruning, Section

StoreName = Literal["procedural", "semantic", "episodic"]


@dataclass(frozen=True, slots=True)
class StoreReport:
    """How one memory did: milliseconds, items found, and why it contributed nothing if it should have."""

    name: StoreName
    enabled: bool
    ms: float = 0.0
    count: int = 0
    degraded: Literal["failed", "late"] | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds from the arrival of the request, save `read_ms` and `assemble_ms`, which are durations."""

    loaded_ms: float
    read_ms: float
    assemble_ms: float
    first_token_ms: float | None
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool call of the turn; arguments and result are in the log, not here."""

    call_id: str
    name: str
    is_error: bool
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """The whole account of one turn."""

    turn_id: UUID
    conversation_id: UUID
    agent_id: UUID
    agent_version: int
    model: str
    layout: str
    stop_reason: str
    budget: Budget
    sections: list[Section]
    pruning: Pruning
    stores: list[StoreReport]
    usage: Usage
    timings: Timings
    token_factor: float
    tools: list[ToolRecord] = field(default_factory=list)
