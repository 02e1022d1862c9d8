"""Procedures, their steps, and what a message matched."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from octopus.recall import Score

TriggerKind = Literal["regex", "glob", "phrases"]
ProcedureStatus = Literal["pending", "approved", "rejected"]
MatchRule = Literal["name", "pattern", "embedding"]
Precedence = Literal["alone", "own", "priority", "length", "name"]
CaptureOutcome = Literal["captured", "evidence", "covered", "not positive", "not understood"]
Change = Literal["created", "captured", "edited", "approved", "rejected", "rolled back"]


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction. `condition` is shown to the model as ``[Only if: …]``; `tool_name` as the tool to use."""

    order: int
    instruction: str
    tool_name: str | None = None
    condition: str | None = None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Procedure:
    """A how-to. `agent_id` None means shared by every agent of the tenant."""

    procedure_id: UUID
    agent_id: UUID | None
    name: str
    description: str
    trigger_kind: TriggerKind
    trigger_pattern: str
    example_phrases: list[str]
    priority: int
    steps: list[Step]
    status: ProcedureStatus
    is_active: bool
    version: int
    created_by: str
    source_conversation_id: UUID | None
    reviewed_by: str | None
    reviewed_at: datetime | None
    review_note: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ProcedureVersion:
    """A procedure as a change left it. `note` is the reviewer's."""

    version: int
    change: Change
    changed_by: str
    changed_at: datetime
    note: str | None
    procedure: Procedure


@dataclass(frozen=True, slots=True)
class ProcedureMatch:
    """A procedure with the rule that chose it; `score` has a cosine only for rule ``embedding``.

    `decided_by` says what set a match by pattern apart from the next one: it was the agent's own, of higher priority,
    the longer match, or, all that being equal, the first by name. ``alone`` means that nothing else matched.
    """

    procedure: Procedure
    rule: MatchRule
    score: Score
    decided_by: Precedence | None = None


@dataclass(frozen=True, slots=True)
class Guidance:
    """The procedure to follow on this turn, if any, and the best ones that did not reach the minimum relevance."""

    match: ProcedureMatch | None = None
    near_misses: list[ProcedureMatch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Capture:
    """The verdict on a session: it yielded a candidate, was evidence for one, or for which reason it was neither.

    `quote` is what the user said at message `quote_seq` that shows that the work was done. `announced_at` is when the
    candidate was put on the bus.
    """

    conversation_id: UUID
    outcome: CaptureOutcome
    procedure_id: UUID | None = None
    quote: str | None = None
    quote_seq: int | None = None
    judged_at: datetime | None = None
    announced_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProcedureStatistics:
    """Use of a procedure, over the sessions that are kept.

    `matches` counts turns. `completions` counts the sessions in which every tool that a required step names was called
    with success since; None for a procedure whose steps name no tool, where there is nothing to go by.
    """

    procedure_id: UUID
    matches: int
    sessions: int
    completions: int | None
    last_used_at: datetime | None
