"""POST /chat, buffered: for clients that cannot read a stream, and for API Gateway."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.request import caller
from functions.chat.request import ChatRequest
from octopus.cloud.wiring import services
from octopus.turn_events import CollectedTurn, collected

router = APIGatewayHttpRouter()


@router.post("/chat")
async def chat(request: Annotated[ChatRequest, Body()]) -> CollectedTurn:
    return await collected(await services().turns.begin(caller(router), request.turn()))
