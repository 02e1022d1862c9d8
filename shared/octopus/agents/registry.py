"""Create, change and retire agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from octopus.agents.ports import AgentStore
from octopus.agents.types import Agent
from octopus.errors import Conflict, InvalidInput, NotFound
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig


class AgentRegistry:
    """The agents of the caller's tenant. Reading is for everybody, writing for administrators."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    async def create(
        self,
        caller: Principal,
        *,
        name: str,
        system_prompt: str,
        description: str = "",
        model: str | None = None,
        memory_config: Mapping[str, Any] | None = None,
    ) -> Agent:
        """Raises `Forbidden`, `InvalidInput` for a setting out of range, `Conflict` for a taken name."""
        caller.require(Role.ADMIN)
        overrides = _overrides({}, memory_config or {})
        return await self._store.create_agent(caller.tenant_id, name, description, system_prompt, model, overrides)

    async def get(self, caller: Principal, agent_id: UUID) -> Agent:
        agent = await self._store.get_agent(caller.tenant_id, agent_id)
        if agent is None:
            raise NotFound(f"There is no agent {agent_id}.")
        return agent

    async def list(self, caller: Principal) -> list[Agent]:
        return await self._store.list_agents(caller.tenant_id)

    async def update(self, caller: Principal, agent_id: UUID, changes: Mapping[str, Any]) -> Agent:
        """Apply a partial change of name, description, system_prompt or model."""
        caller.require(Role.ADMIN)
        agent = replace(await self.get(caller, agent_id), **changes)
        return await self._write(caller, agent, _chosen(agent.memory_config))

    async def configure_memory(self, caller: Principal, agent_id: UUID, changes: Mapping[str, Any]) -> MemoryConfig:
        """Apply a partial change of the memory configuration; it holds from the next turn on.

        A value of None puts the property back to its default. Raises `InvalidInput` naming the field.
        """
        caller.require(Role.ADMIN)
        agent = await self.get(caller, agent_id)
        written = await self._write(caller, agent, _overrides(_chosen(agent.memory_config), changes))
        return written.memory_config

    async def delete(self, caller: Principal, agent_id: UUID) -> None:
        caller.require(Role.ADMIN)
        if not await self._store.delete_agent(caller.tenant_id, agent_id):
            raise NotFound(f"There is no agent {agent_id}.")

    async def _write(self, caller: Principal, agent: Agent, memory_config: Mapping[str, Any]) -> Agent:
        written = await self._store.update_agent(caller.tenant_id, agent, memory_config)
        if written is None:
            raise Conflict(f"Agent {agent.agent_id} was changed at the same time; read it again and retry.")
        return written


def _chosen(config: MemoryConfig) -> dict[str, Any]:
    """The properties that differ from the defaults."""
    return config.model_dump(exclude_defaults=True)


def _overrides(current: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {k: v for k, v in {**current, **changes}.items() if v is not None}
    try:
        return _chosen(MemoryConfig(**merged))
    except ValidationError as exc:
        first = exc.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "memory_config"
        raise InvalidInput(f"{field}: {first['msg']}.", field=field) from exc
