"""Tools as the model sees them, its calls, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told of a tool. `input_schema` is a JSON schema of type object."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Following:
    """The step of a procedure on whose behalf a tool is called."""

    procedure_id: UUID
    version: int
    step: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for. `id` pairs it with its result."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    following: Following | None = None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What the model is given back: a result, or with `is_error` the reason why there is none."""

    call_id: str
    name: str
    content: str
    is_error: bool
    elapsed_ms: float
