"""The body of a chat request, the same for the stream and for API Gateway."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from octopus.errors import InvalidInput, MalformedBody
from octopus.turn_types import TurnRequest


class ChatRequest(BaseModel):
    """What a chat application sends. Tenant and user are not in it: they come from the token."""

    model_config = ConfigDict(extra="forbid")

    agent_id: UUID
    message: str
    conversation_id: UUID | None = None
    message_id: str | None = None
    inspect: bool = False

    def turn(self) -> TurnRequest:
        return TurnRequest(**self.model_dump())


def turn_request(body: bytes) -> TurnRequest:
    """Raises `MalformedBody` for what is not JSON, `InvalidInput` naming the first field that is wrong."""
    try:
        return ChatRequest.model_validate_json(body).turn()
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        if first["type"] == "json_invalid":
            raise MalformedBody(f"The body is not valid JSON: {first['ctx']['error']}.") from exc
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise InvalidInput(f"{field}: {first['msg']}.", field=field) from exc
