"""Register, change and remove the tools of agents."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from octopus.agents.registry import AgentRegistry
from octopus.errors import Conflict, NotFound
from octopus.identity import Principal, Role
from octopus.tools.ports import ToolStore, ToolTargets
from octopus.tools.schema import check_schema
from octopus.tools.types import AgentTool, CallRecord, HttpsTarget, LambdaTarget

# Models choose badly among more, and every one of them is in every prompt.
MAX_TOOLS = 64


class ToolRegistry:
    """The tools of the agents of the caller's tenant, for administrators."""

    def __init__(
        self, store: ToolStore, targets: ToolTargets, agents: AgentRegistry, reserved: Collection[str]
    ) -> None:
        """`reserved` are the names of the built-in tools."""
        self._store = store
        self._targets = targets
        self._agents = agents
        self._reserved = reserved

    async def add(
        self,
        caller: Principal,
        agent_id: UUID,
        *,
        name: str,
        description: str,
        input_schema: dict[str, Any],
        target: LambdaTarget | HttpsTarget,
        is_active: bool = True,
    ) -> AgentTool:
        """Raises `InvalidInput` for a schema or a target that cannot be used, `Conflict` for a taken name."""
        caller.require(Role.ADMIN)
        if name in self._reserved:
            raise Conflict(f"Every agent has a built-in tool named '{name}'; choose another name.")
        check_schema(input_schema)
        self._targets.check(target)
        now = datetime.now(UTC)
        tool = AgentTool(agent_id, name, description, input_schema, target, is_active, 1, caller.user_id, now, now)
        if len(await self.list(caller, agent_id)) >= MAX_TOOLS:
            raise Conflict(f"The agent has {MAX_TOOLS} tools already; delete one first.")
        if not await self._store.add_tool(caller.tenant_id, tool):
            raise NotFound(f"There is no agent {agent_id}.")
        return tool

    async def get(self, caller: Principal, agent_id: UUID, name: str) -> AgentTool:
        caller.require(Role.ADMIN)
        tool = await self._store.get_tool(caller.tenant_id, agent_id, name)
        if tool is None:
            raise NotFound(f"The agent has no tool named '{name}'.")
        return tool

    async def update(self, caller: Principal, agent_id: UUID, name: str, changes: Mapping[str, Any]) -> AgentTool:
        """Change description, input_schema, target or is_active; it holds from the next turn on."""
        tool = replace(await self.get(caller, agent_id, name), updated_at=datetime.now(UTC), **changes)
        check_schema(tool.input_schema)
        self._targets.check(tool.target)
        written = await self._store.update_tool(caller.tenant_id, tool)
        if written is None:
            raise Conflict(f"The tool '{name}' was changed at the same time; read it again and retry.")
        return written

    async def delete(self, caller: Principal, agent_id: UUID, name: str) -> None:
        caller.require(Role.ADMIN)
        if not await self._store.delete_tool(caller.tenant_id, agent_id, name):
            raise NotFound(f"The agent has no tool named '{name}'.")

    async def calls(self, caller: Principal, conversation_id: UUID) -> list[CallRecord]:
        """The calls of a conversation; administrators see those of every user."""
        return await self._store.list_calls(caller.tenant_id, caller.reach(), conversation_id)

    async def list(self, caller: Principal, agent_id: UUID) -> list[AgentTool]:
        """By name; the built-in ones are not listed."""
        caller.require(Role.ADMIN)
        await self._agents.get(caller, agent_id)
        return await self._store.list_tools(caller.tenant_id, agent_id)
