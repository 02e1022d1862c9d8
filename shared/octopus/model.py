"""The port through which Octopus speaks to a language model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from octopus.conversations.types import Block

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counted them. `input_tokens` is the uncached rest only."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_input_tokens(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call in the shape of the Messages API. `system` and message content are lists of blocks."""

    model: str
    system: list[Block]
    messages: list[dict[str, Any]]
    max_tokens: int
    tools: Sequence[dict[str, Any]] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answered. `stop_reason` is the provider's (end_turn, max_tokens, tool_use, …)."""

    content: list[Block]
    stop_reason: str
    usage: Usage


class ReplyStream(Protocol):
    """A reply that is arriving."""

    def __aiter__(self) -> AsyncIterator[str]:
        """Pieces of text as they arrive. Raises `ModelUnavailable` when the stream breaks off."""
        ...

    def reply(self) -> Reply:
        """The whole reply; call it when the pieces have ended."""
        ...


class ChatModel(Protocol):
    """A language model."""

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[ReplyStream]:
        """Ask for a reply.

        Raises `ModelUnavailable` for what passes (overload, rate limit, time-out, a broken connection) and
        `ModelRefused` for what does not (a bad key, a request that the provider does not take).
        """
        ...

    async def structured(
        self,
        *,
        model: str | None,
        system: str,
        messages: list[dict[str, Any]],
        schema: type[T],
        max_tokens: int,
    ) -> T:
        """Ask for an instance of `schema`; None for the configured summary model.

        Raises `ModelReplyInvalid` when the reply does not validate, and what `stream` raises.
        """
        ...

    async def count_tokens(self, request: ModelRequest) -> int:
        """The provider's own count of the request's input; a network call, so only near the limit."""
        ...
