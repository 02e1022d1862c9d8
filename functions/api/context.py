"""/conversations/{id}/turns/{turn_id}/context: the Context Inspector."""

from __future__ import annotations

from uuid import UUID

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.request import caller
from octopus.cloud.wiring import services
from octopus.working.inspector import InspectorReport

router = APIGatewayHttpRouter()


@router.get("/conversations/<conversation_id>/turns/<turn_id>/context")
async def inspect_turn(conversation_id: UUID, turn_id: UUID) -> InspectorReport:
    return await services().inspector.inspect(caller(router), conversation_id, turn_id)
