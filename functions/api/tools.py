"""/agents/{id}/tools, and the record of what was called."""

from __future__ import annotations

from typing import Annotated, Any, Self
from uuid import UUID

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from functions.api.request import Text, caller
from octopus.cloud.wiring import services
from octopus.procedural.draft import ToolName
from octopus.tools.types import AgentTool, CallRecord, Target

router = APIGatewayHttpRouter()


class NewTool(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: ToolName
    description: Annotated[Text, Field(max_length=4_000)]
    input_schema: dict[str, Any]
    target: Target
    is_active: bool = True


class ToolChanges(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: Annotated[Text, Field(max_length=4_000)] | None = None
    input_schema: dict[str, Any] | None = None
    target: Target | None = None
    is_active: bool | None = None

    @model_validator(mode="after")
    def _no_null(self) -> Self:
        for field in self.model_fields_set:
            if getattr(self, field) is None:
                raise ValueError(f"{field} cannot be null; leave it out to keep it")
        return self


@router.get("/agents/<agent_id>/tools")
async def list_tools(agent_id: UUID) -> list[AgentTool]:
    return await services().tools.list(caller(router), agent_id)


@router.post("/agents/<agent_id>/tools")
async def add_tool(agent_id: UUID, tool: Annotated[NewTool, Body()]) -> tuple[AgentTool, int]:
    return await services().tools.add(caller(router), agent_id, **dict(tool)), 201


@router.get("/agents/<agent_id>/tools/<name>")
async def get_tool(agent_id: UUID, name: str) -> AgentTool:
    return await services().tools.get(caller(router), agent_id, name)


@router.patch("/agents/<agent_id>/tools/<name>")
async def update_tool(agent_id: UUID, name: str, changes: Annotated[ToolChanges, Body()]) -> AgentTool:
    changed = {field: getattr(changes, field) for field in changes.model_fields_set}
    return await services().tools.update(caller(router), agent_id, name, changed)


@router.delete("/agents/<agent_id>/tools/<name>")
async def delete_tool(agent_id: UUID, name: str) -> tuple[None, int]:
    await services().tools.delete(caller(router), agent_id, name)
    return None, 204


@router.get("/conversations/<conversation_id>/tool-calls")
async def list_calls(conversation_id: UUID) -> list[CallRecord]:
    return await services().tools.calls(caller(router), conversation_id)
