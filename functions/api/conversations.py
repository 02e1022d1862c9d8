"""/conversations: sessions, what was said in them, closing them, and thumbs."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from functions.api.request import Cursor, Limit, Name, caller
from octopus.cloud.wiring import services
from octopus.conversations.sessions import Feedback, Session
from octopus.conversations.types import Message
from octopus.paging import Page
from octopus.text import storable

router = APIGatewayHttpRouter()


class NewFeedback(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rating: Literal[1, -1]
    comment: Annotated[str, Field(max_length=2_000), AfterValidator(storable)] | None = None


@router.get("/conversations")
async def list_conversations(
    agent_id: Annotated[UUID | None, Query()] = None,
    user_id: Annotated[Name | None, Query()] = None,
    cursor: Annotated[Cursor | None, Query()] = None,
    limit: Annotated[Limit, Query()] = 50,
) -> Page[Session]:
    return await services().sessions.list(
        caller(router), agent_id=agent_id, user_id=user_id, cursor=cursor, limit=limit
    )


@router.get("/conversations/<conversation_id>")
async def get_conversation(conversation_id: UUID) -> Session:
    return await services().sessions.get(caller(router), conversation_id)


@router.get("/conversations/<conversation_id>/messages")
async def list_messages(
    conversation_id: UUID,
    cursor: Annotated[Cursor | None, Query()] = None,
    limit: Annotated[Limit, Query()] = 100,
) -> Page[Message]:
    return await services().sessions.messages(caller(router), conversation_id, cursor=cursor, limit=limit)


@router.post("/conversations/<conversation_id>/close")
async def close_conversation(conversation_id: UUID) -> Session:
    return await services().sessions.close(caller(router), conversation_id)


@router.post("/conversations/<conversation_id>/messages/<message_id>/feedback")
async def rate_message(conversation_id: UUID, message_id: UUID, feedback: Annotated[NewFeedback, Body()]) -> Feedback:
    return await services().sessions.rate(
        caller(router), conversation_id, message_id, feedback.rating, feedback.comment
    )
