"""What every group of endpoints reads from a request."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import AfterValidator, Field

from octopus.identity import Principal
from octopus.text import storable


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(storable), AfterValidator(_not_blank)]
Text = Annotated[str, Field(min_length=1, max_length=100_000), AfterValidator(storable), AfterValidator(_not_blank)]
Remark = Annotated[str, Field(max_length=2_000), AfterValidator(storable)]
Cursor = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(storable)]
Limit = Annotated[int, Field(ge=1, le=200)]


def caller(router: APIGatewayHttpRouter) -> Principal:
    """The verified caller of the current request."""
    principal = router.context["caller"]
    assert isinstance(principal, Principal)  # put there before the request is routed
    return principal
