"""Tools as the model sees them, its calls, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from octopus.errors import OctopusError
from octopus.procedural.types import Procedure


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told of a tool. `input_schema` is a JSON schema of type object."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Occasion:
    """The turn in which tools are called, and the procedure that it follows, if any."""

    conversation_id: UUID
    turn_id: UUID
    procedure: Procedure | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for. `id` pairs it with its result."""

    id: str
    name: str
    arguments: Mapping[str, Any]


CallOutcome = Literal["running", "succeeded", "refused", "failed", "timed out", "cancelled"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call as it is kept. `running` for ever means that the function died during the call; `refused`, that nothing
    was called. `step` is the first step of the followed procedure that names the tool."""

    tool_call_id: UUID
    conversation_id: UUID
    turn_id: UUID
    agent_id: UUID
    user_id: str
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    outcome: CallOutcome
    duration_ms: float | None
    procedure_id: UUID | None
    procedure_version: int | None
    step: int | None
    called_at: datetime


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What the model is given back: a result, or with `is_error` the reason why there is none."""

    call_id: str
    name: str
    content: str
    is_error: bool
    elapsed_ms: float


FUNCTION_NAME = r"^[a-zA-Z0-9_-]{1,64}(:[a-zA-Z0-9$_-]{1,128})?$"


class LambdaTarget(BaseModel):
    """A Lambda function, by name with an optional alias or version."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["lambda"]
    function: Annotated[str, Field(pattern=FUNCTION_NAME)]


class HttpsTarget(BaseModel):
    """An HTTPS endpoint, called with POST. `secret` names the tenant's secret that is sent as bearer token."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["https"]
    url: Annotated[str, Field(max_length=2_000)]
    secret: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")] | None = None


Target = Annotated[LambdaTarget | HttpsTarget, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A registered tool of an agent."""

    agent_id: UUID
    name: str
    description: str
    input_schema: dict[str, Any]
    target: LambdaTarget | HttpsTarget
    is_active: bool
    version: int
    created_by: str
    created_at: datetime
    updated_at: datetime

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.input_schema)


class ToolFailed(OctopusError):
    """The tool gave no result; the detail is for the model, which may try something else."""

    title = "Tool failed"


class ArgumentsRefused(ToolFailed):
    """The call does not fit the tool's schema, or there is no such tool; nothing was called."""

    title = "Call refused"
