"""Procedures for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from octopus.procedural.draft import ProcedureDraft
from octopus.procedural.types import Procedure, Step

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def procedure(name: str, pattern: str, **changes: Any) -> Procedure:
    """An approved procedure, shared unless `agent_id` is given."""
    defaults: dict[str, Any] = {
        "procedure_id": uuid4(),
        "agent_id": None,
        "description": f"How to {name}.",
        "trigger_kind": "regex",
        "example_phrases": [],
        "priority": 0,
        "steps": [Step(1, "Ask for the name.")],
        "status": "approved",
        "is_active": True,
        "version": 1,
        "created_by": "root",
        "source_conversation_id": None,
        "reviewed_by": "root",
        "reviewed_at": NOW,
        "review_note": None,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Procedure(name=name, trigger_pattern=pattern, **(defaults | changes))


def draft(name: str, pattern: str, agent_id: UUID | None = None, **changes: Any) -> ProcedureDraft:
    """What an administrator sends."""
    defaults: dict[str, Any] = {
        "description": f"How to {name}.",
        "steps": [{"instruction": "Ask for the name."}],
    }
    return ProcedureDraft(name=name, trigger_pattern=pattern, agent_id=agent_id, **(defaults | changes))
