"""What an author writes: a procedure before it has an id, and changes to one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Self
from uuid import UUID, uuid4

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from octopus.procedural.trigger import MAX_CHARS
from octopus.procedural.types import Procedure, ProcedureStatus, Step, TriggerKind
from octopus.text import storable

# Phrases of one procedure that get a vector of their own.
MAX_PHRASES = 50

Text = Annotated[str, Field(min_length=1, max_length=4_000), AfterValidator(storable)]
Line = Annotated[str, Field(max_length=500, pattern=r"^[^\r\n]+$"), AfterValidator(storable)]
# Shown as [Procedure: name], and matched when a message says it: so a letter or digit, and no brackets.
_NAME = r"^[^\[\]\r\n]*[\pL\pN][^\[\]\r\n]*$"
Name = Annotated[str, Field(max_length=200, pattern=_NAME), AfterValidator(storable)]
ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
Pattern = Annotated[str, Field(min_length=1, max_length=max(MAX_CHARS.values())), AfterValidator(storable)]
Priority = Annotated[int, Field(ge=-1_000, le=1_000)]


class StepDraft(BaseModel):
    """A step. `{{name}}` stands for a value that the conversation gives.

    Steps are followed by `order`, which may be left out of all of them if they are in order already.
    """

    model_config = ConfigDict(extra="forbid")

    order: int | None = None
    instruction: Text
    tool_name: ToolName | None = None
    condition: Text | None = None
    is_optional: bool = False


def _in_order(steps: list[StepDraft]) -> list[StepDraft]:
    orders = [step.order for step in steps if step.order is not None]
    if orders and len(set(orders)) < len(steps):
        raise ValueError("give every step an order of its own, or none of them")
    return sorted(steps, key=lambda step: step.order or 0)


Steps = Annotated[list[StepDraft], Field(min_length=1, max_length=100), AfterValidator(_in_order)]
Phrases = Annotated[list[Line], Field(max_length=50)]


class ProcedureDraft(BaseModel):
    """A new procedure. `agent_id` must be given, for null means every agent of the tenant."""

    model_config = ConfigDict(extra="forbid")

    agent_id: UUID | None
    name: Name
    description: Text
    trigger_kind: TriggerKind = "regex"
    trigger_pattern: Pattern
    example_phrases: Phrases = []
    priority: Priority = 0
    steps: Steps
    is_active: bool = True


class ProcedureChanges(BaseModel):
    """A partial change. `agent_id` null shares the procedure; with `version`, it applies to that version only."""

    model_config = ConfigDict(extra="forbid")

    agent_id: None = None
    name: Name | None = None
    description: Text | None = None
    trigger_kind: TriggerKind | None = None
    trigger_pattern: Pattern | None = None
    example_phrases: Phrases | None = None
    priority: Priority | None = None
    steps: Steps | None = None
    is_active: bool | None = None
    version: int | None = None

    @model_validator(mode="after")
    def _no_null(self) -> Self:
        for field in self.model_fields_set - {"agent_id", "version"}:
            if getattr(self, field) is None:
                raise ValueError(f"{field} cannot be null; leave it out to keep it")
        return self

    def values(self) -> dict[str, Any]:
        """The fields of a `Procedure` that are to change."""
        changed = {name: getattr(self, name) for name in self.model_fields_set - {"version", "steps"}}
        return changed | ({"steps": numbered(self.steps)} if self.steps else {})


def numbered(steps: list[StepDraft]) -> list[Step]:
    """Steps as they are kept, counted from 1."""
    return [Step(order=n, **step.model_dump(exclude={"order"})) for n, step in enumerate(steps, start=1)]


def embedded_texts(procedure: Procedure) -> list[str]:
    """What a message is compared with: name, description, and how users say it."""
    said = list(procedure.example_phrases)
    if procedure.trigger_kind == "phrases":
        said += [line.strip() for line in procedure.trigger_pattern.splitlines() if line.strip()]
    texts = [procedure.name.replace("_", " "), procedure.description, *said[:MAX_PHRASES]]
    return list(dict.fromkeys(texts))


def written_by(
    author: str, draft: ProcedureDraft, status: ProcedureStatus, source_conversation_id: UUID | None = None
) -> Procedure:
    """The first version of a procedure. One that is approved as it is written is its author's responsibility."""
    now = datetime.now(UTC)
    approved = status == "approved"
    return Procedure(
        procedure_id=uuid4(),
        **draft.model_dump(exclude={"steps"}),
        steps=numbered(draft.steps),
        status=status,
        version=1,
        created_by=author,
        source_conversation_id=source_conversation_id,
        reviewed_by=author if approved else None,
        reviewed_at=now if approved else None,
        review_note=None,
        created_at=now,
        updated_at=now,
    )
