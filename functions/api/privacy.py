"""/users/{id}/memory: all that is kept of a user, to have or to have gone."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.request import Cursor, caller
from octopus.cloud.wiring import services
from octopus.episodic.privacy import Erasure

router = APIGatewayHttpRouter()


@router.get("/users/<user_id>/memory")
async def export_memory(
    user_id: str,
    agent_id: Annotated[UUID | None, Query()] = None,
    cursor: Annotated[Cursor | None, Query()] = None,
) -> Response[str]:
    lines = await services().privacy.export(caller(router), user_id, agent_id, cursor)
    return Response(status_code=200, content_type="application/jsonl", body=lines)


@router.delete("/users/<user_id>/memory")
async def erase_memory(user_id: str, agent_id: Annotated[UUID | None, Query()] = None) -> Erasure:
    return await services().privacy.erase(caller(router), user_id, agent_id)
