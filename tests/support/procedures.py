"""Procedures for tests."""

from __future__ import annotations

import random
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


_RNG = random.Random(11)
VOCABULARY = ["".join(_RNG.choices("abcdefghijklmnopqrstuvwxyz", k=_RNG.randint(3, 9))) for _ in range(5_000)]


def many_procedures(rng: random.Random, number: int, agent_id: UUID | None = None) -> list[Procedure]:
    """Procedures with triggers of every kind, half of them the agent's own, of three priorities."""
    return [_any_procedure(rng, agent_id if n % 2 else None, n % 3) for n in range(number)]


def _any_procedure(rng: random.Random, agent_id: UUID | None, priority: int) -> Procedure:
    a, b, c = rng.sample(VOCABULARY, 3)
    kind, pattern = rng.choice(
        [
            ("regex", f"{a}.*{b}"),
            ("regex", f"({a}|{b}).*{c}"),
            ("regex", rf"\b{a}\s+{b}\b"),
            ("regex", f"how (do|can) i {a}.*{b}"),
            ("glob", f"{a} * {b}"),
            ("phrases", f"{a} {b}\n{b} {c}"),
        ]
    )
    return procedure(f"p_{uuid4().hex}", pattern, trigger_kind=kind, agent_id=agent_id, priority=priority)


def usual_message(rng: random.Random) -> str:
    """10,000 characters of words that no trigger has, with words of a few triggers somewhere in it."""
    words = [f"{rng.choice(VOCABULARY)[::-1]}q" for _ in range(2_000)]
    words[1_000:1_000] = rng.sample(VOCABULARY, 10)
    return " ".join(words)[:10_000]


def dense_message(rng: random.Random) -> str:
    """10,000 characters of nothing but words of triggers."""
    return " ".join(rng.choices(VOCABULARY, k=3_000))[:10_000]
