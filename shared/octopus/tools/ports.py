"""What the tool loop needs from the outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from octopus.recall import Scope
from octopus.tools.types import (
    AgentTool,
    CallOutcome,
    CallRecord,
    HttpsTarget,
    LambdaTarget,
    Occasion,
    ToolCall,
    ToolSpec,
)


class ToolBox(Protocol):
    """The tools of an agent. Tenant and user come from the scope, never from the model's arguments."""

    async def specs(self, scope: Scope) -> Sequence[ToolSpec]:
        """What the model may call; no name twice."""
        ...

    async def call(self, scope: Scope, occasion: Occasion, call: ToolCall) -> str:
        """The result. Raises an `OctopusError`, whose detail the model will read, when there is none."""
        ...


class ToolTargets(Protocol):
    """Where registered tools run."""

    def check(self, target: LambdaTarget | HttpsTarget) -> None:
        """Raise `InvalidInput` for a target that this deployment does not allow."""
        ...

    async def invoke(self, tenant_id: str, target: LambdaTarget | HttpsTarget, payload: Mapping[str, Any]) -> str:
        """What the target answers, as text. Raises `ToolFailed`. The caller bounds the time."""
        ...


class ToolStore(Protocol):
    """Registered tools of a tenant, and the calls that were made."""

    async def add_tool(self, tenant_id: str, tool: AgentTool) -> bool:
        """False when there is no such agent. Raises `Conflict` for a name that the agent has already."""
        ...

    async def update_tool(self, tenant_id: str, tool: AgentTool) -> AgentTool | None:
        """Write the next version if the tool is still at its `version`; None when it is not."""
        ...

    async def get_tool(self, tenant_id: str, agent_id: UUID, name: str) -> AgentTool | None: ...

    async def list_tools(self, tenant_id: str, agent_id: UUID) -> list[AgentTool]:
        """By name."""
        ...

    async def delete_tool(self, tenant_id: str, agent_id: UUID, name: str) -> bool: ...

    async def begin_call(self, tenant_id: str, record: CallRecord) -> None: ...

    async def finish_call(
        self, tenant_id: str, tool_call_id: UUID, outcome: CallOutcome, duration_ms: float
    ) -> None: ...

    async def list_calls(self, tenant_id: str, user_id: str | None, conversation_id: UUID) -> list[CallRecord]:
        """In the order they were made; `user_id` None means any user's."""
        ...
