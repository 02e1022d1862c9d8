"""Agents in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from octopus.agents.types import Agent
from octopus.cloud.database import Database, Row
from octopus.cloud.queries import load_queries
from octopus.errors import Conflict
from octopus.memory_config import MemoryConfig

_SQL = load_queries(__package__)


class PostgresAgentStore:
    """Implements `octopus.agents.ports.AgentStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_agent(
        self,
        tenant_id: str,
        name: str,
        description: str,
        system_prompt: str,
        model: str | None,
        memory_config: Mapping[str, Any],
    ) -> Agent:
        params = {
            "tenant_id": tenant_id,
            "agent_id": uuid4(),
            "name": name,
            "description": description,
            "system_prompt": system_prompt,
            "model": model,
            "memory_config": Jsonb(dict(memory_config)),
        }
        try:
            row = await self._database.one(tenant_id, _SQL["create_agent"], params)
        except Conflict as exc:
            raise Conflict(f"There is an agent named '{name}' already; choose another name.") from exc
        assert row is not None  # insert … returning yields its row
        return agent_from(row)

    async def get_agent(self, tenant_id: str, agent_id: UUID) -> Agent | None:
        row = await self._database.one(tenant_id, _SQL["get_agent"], {"tenant_id": tenant_id, "agent_id": agent_id})
        return agent_from(row) if row else None

    async def list_agents(self, tenant_id: str) -> list[Agent]:
        rows = await self._database.all(tenant_id, _SQL["list_agents"], {"tenant_id": tenant_id})
        return [agent_from(row) for row in rows]

    async def update_agent(self, tenant_id: str, agent: Agent, memory_config: Mapping[str, Any]) -> Agent | None:
        params = {
            "tenant_id": tenant_id,
            "agent_id": agent.agent_id,
            "name": agent.name,
            "description": agent.description,
            "system_prompt": agent.system_prompt,
            "model": agent.model,
            "memory_config": Jsonb(dict(memory_config)),
            "version": agent.version,
        }
        try:
            row = await self._database.one(tenant_id, _SQL["update_agent"], params)
        except Conflict as exc:
            raise Conflict(f"There is an agent named '{agent.name}' already; choose another name.") from exc
        return agent_from(row) if row else None

    async def delete_agent(self, tenant_id: str, agent_id: UUID) -> bool:
        params = {"tenant_id": tenant_id, "agent_id": agent_id}
        return await self._database.run(tenant_id, _SQL["delete_agent"], params) == 1


def agent_from(row: Row) -> Agent:
    """An agent from the columns of `agents`; settings it never chose take today's defaults."""
    return Agent(
        agent_id=row["agent_id"],
        name=row["name"],
        description=row["description"],
        system_prompt=row["system_prompt"],
        model=row["model"],
        # A newer release may have written settings that this one does not know: they are kept, and not used.
        memory_config=MemoryConfig.model_validate(row["memory_config"], extra="ignore"),
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
