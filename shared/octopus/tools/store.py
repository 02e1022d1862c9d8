"""Registered tools and their calls in PostgreSQL."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from octopus.cloud.database import Database
from octopus.cloud.queries import load_queries
from octopus.errors import Conflict
from octopus.tools.types import AgentTool, CallOutcome, CallRecord, Target

_SQL = load_queries(__package__)
_TARGET: TypeAdapter[Any] = TypeAdapter(Target)


class PostgresToolStore:
    """Implements `octopus.tools.ports.ToolStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_tool(self, tenant_id: str, tool: AgentTool) -> bool:
        try:
            return await self._database.run(tenant_id, _SQL["add_tool"], _columns(tenant_id, tool)) == 1
        except Conflict as exc:
            raise Conflict(f"The agent has a tool named '{tool.name}' already; choose another name.") from exc

    async def update_tool(self, tenant_id: str, tool: AgentTool) -> AgentTool | None:
        if await self._database.run(tenant_id, _SQL["update_tool"], _columns(tenant_id, tool)) == 0:
            return None
        return replace(tool, version=tool.version + 1)

    async def get_tool(self, tenant_id: str, agent_id: UUID, name: str) -> AgentTool | None:
        row = await self._database.one(tenant_id, _SQL["get_tool"], _key(tenant_id, agent_id, name))
        return _tool(row) if row else None

    async def list_tools(self, tenant_id: str, agent_id: UUID) -> list[AgentTool]:
        params = {"tenant_id": tenant_id, "agent_id": agent_id}
        return [_tool(row) for row in await self._database.all(tenant_id, _SQL["list_tools"], params)]

    async def delete_tool(self, tenant_id: str, agent_id: UUID, name: str) -> bool:
        return await self._database.run(tenant_id, _SQL["delete_tool"], _key(tenant_id, agent_id, name)) == 1

    async def begin_call(self, tenant_id: str, record: CallRecord) -> None:
        params = {**asdict(record), "tenant_id": tenant_id, "arguments": Jsonb(dict(record.arguments))}
        await self._database.run(tenant_id, _SQL["begin_call"], params)

    async def finish_call(self, tenant_id: str, tool_call_id: UUID, outcome: CallOutcome, duration_ms: float) -> None:
        params = {
            "tenant_id": tenant_id,
            "tool_call_id": tool_call_id,
            "outcome": outcome,
            "duration_ms": duration_ms,
        }
        await self._database.run(tenant_id, _SQL["finish_call"], params)

    async def list_calls(self, tenant_id: str, user_id: str | None, conversation_id: UUID) -> list[CallRecord]:
        params = {"tenant_id": tenant_id, "user_id": user_id, "conversation_id": conversation_id}
        rows = await self._database.all(tenant_id, _SQL["list_calls"], params)
        return [CallRecord(**row) for row in rows]


def _key(tenant_id: str, agent_id: UUID, name: str) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "agent_id": agent_id, "name": name}


def _columns(tenant_id: str, tool: AgentTool) -> dict[str, Any]:
    return {
        **asdict(tool),
        "tenant_id": tenant_id,
        "input_schema": Jsonb(tool.input_schema),
        "target": Jsonb(tool.target.model_dump()),
    }


def _tool(row: dict[str, Any]) -> AgentTool:
    return AgentTool(**{**row, "target": _TARGET.validate_python(row["target"])})
