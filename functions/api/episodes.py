"""/episodes: what was remembered of past sessions."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import BaseModel, ConfigDict, Field

from functions.api.request import Cursor, Limit, Name, Text, caller
from octopus.cloud.wiring import services
from octopus.episodic.types import Episode, Recollection
from octopus.memory_config import MemoryConfig, Score
from octopus.paging import Page

router = APIGatewayHttpRouter()


class EpisodeSearch(BaseModel):
    """What to look for. What is left out is as the agent's memory configuration has it."""

    model_config = ConfigDict(extra="forbid")

    agent_id: UUID
    query: Text
    mode: Literal["semantic", "recency", "both"] | None = None
    top_k: Annotated[int, Field(ge=1, le=50)] | None = None
    min_score: Score | None = None

    def applied_to(self, config: MemoryConfig) -> MemoryConfig:
        """The agent's configuration with what the search asks for."""
        asked = {
            "episodic_recall_mode": self.mode,
            "episodic_top_k": self.top_k,
            "episodic_min_score": self.min_score,
        }
        return config.model_copy(update={name: value for name, value in asked.items() if value is not None})


@router.get("/episodes")
async def list_episodes(
    agent_id: Annotated[UUID | None, Query()] = None,
    user_id: Annotated[Name | None, Query()] = None,
    cursor: Annotated[Cursor | None, Query()] = None,
    limit: Annotated[Limit, Query()] = 50,
) -> Page[Episode]:
    return await services().episodes.list(
        caller(router), agent_id=agent_id, user_id=user_id, cursor=cursor, limit=limit
    )


@router.get("/episodes/<episode_id>")
async def get_episode(episode_id: UUID) -> Episode:
    return await services().episodes.get(caller(router), episode_id)


@router.delete("/episodes/<episode_id>")
async def delete_episode(episode_id: UUID) -> tuple[None, int]:
    await services().episodes.delete(caller(router), episode_id)
    return None, 204


@router.post("/episodes/search")
async def search_episodes(
    search: Annotated[EpisodeSearch, Body()], user_id: Annotated[Name | None, Query()] = None
) -> Recollection:
    agent = await services().agents.get(caller(router), search.agent_id)
    return await services().episodes.search(
        caller(router),
        agent_id=search.agent_id,
        query=search.query,
        config=search.applied_to(agent.memory_config),
        user_id=user_id,
    )
