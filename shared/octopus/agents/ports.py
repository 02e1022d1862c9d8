"""What the agents room needs from the outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from octopus.agents.types import Agent


class AgentStore(Protocol):
    """Agents of a tenant; a deleted agent is not found."""

    async def create_agent(
        self,
        tenant_id: str,
        name: str,
        description: str,
        system_prompt: str,
        model: str | None,
        memory_config: Mapping[str, Any],
    ) -> Agent:
        """Raises `Conflict` when the tenant has an agent of that name."""
        ...

    async def get_agent(self, tenant_id: str, agent_id: UUID) -> Agent | None: ...

    async def list_agents(self, tenant_id: str) -> list[Agent]: ...

    async def update_agent(self, tenant_id: str, agent: Agent, memory_config: Mapping[str, Any]) -> Agent | None:
        """Write the agent if it is still at its `version`; None when it is not. Raises `Conflict` for a taken name."""
        ...

    async def delete_agent(self, tenant_id: str, agent_id: UUID) -> bool: ...
