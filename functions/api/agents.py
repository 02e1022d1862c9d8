"""/agents and /agents/{id}/memory-config."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import BaseModel, ConfigDict

from functions.api.request import Name, Remark, Text, caller
from octopus.agents.types import Agent
from octopus.cloud.wiring import services
from octopus.memory_config import MemoryConfig

router = APIGatewayHttpRouter()


class NewAgent(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name
    system_prompt: Text
    description: Remark = ""
    model: Name | None = None
    memory_config: dict[str, Any] = {}


class AgentChanges(BaseModel):
    model_config = ConfigDict(extra="forbid")

    # Only what is set is changed, so these defaults are never used; null is for the model alone: the deployment's.
    name: Name = ""
    system_prompt: Text = ""
    description: Remark = ""
    model: Name | None = None


@router.get("/agents")
async def list_agents() -> list[Agent]:
    return await services().agents.list(caller(router))


@router.post("/agents")
async def create_agent(agent: Annotated[NewAgent, Body()]) -> tuple[Agent, int]:
    return await services().agents.create(caller(router), **agent.model_dump()), 201


@router.get("/agents/<agent_id>")
async def get_agent(agent_id: UUID) -> Agent:
    return await services().agents.get(caller(router), agent_id)


@router.patch("/agents/<agent_id>")
async def update_agent(agent_id: UUID, changes: Annotated[AgentChanges, Body()]) -> Agent:
    return await services().agents.update(caller(router), agent_id, changes.model_dump(exclude_unset=True))


@router.delete("/agents/<agent_id>")
async def delete_agent(agent_id: UUID) -> tuple[None, int]:
    await services().agents.delete(caller(router), agent_id)
    return None, 204


@router.get("/agents/<agent_id>/memory-config")
async def get_memory_config(agent_id: UUID) -> MemoryConfig:
    return (await services().agents.get(caller(router), agent_id)).memory_config


@router.patch("/agents/<agent_id>/memory-config")
async def configure_memory(agent_id: UUID, changes: Annotated[dict[str, Any], Body()]) -> MemoryConfig:
    return await services().agents.configure_memory(caller(router), agent_id, changes)
