"""A scripted model: answers what the test says, when the test says, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel

from octopus.conversations.types import Block, text_block
from octopus.errors import ModelUnavailable, OctopusError
from octopus.model import ModelRequest, Reply, Usage


class Say:
    """One reply: pieces of text, then tool calls, then the end or an error. `gate` holds it after the first piece."""

    def __init__(
        self,
        *pieces: str,
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        stop_reason: str | None = None,
        error: OctopusError | None = None,
        gate: asyncio.Event | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.pieces = pieces
        self.calls = calls
        self.stop_reason = stop_reason or ("tool_use" if calls else "end_turn")
        self.error = error
        self.gate = gate
        self.usage = usage or Usage(100, 10)

    async def __aiter__(self) -> AsyncIterator[str]:
        for piece in self.pieces:
            yield piece
            if self.gate:
                await self.gate.wait()
        if self.error:
            raise self.error

    def reply(self) -> Reply:
        content: list[Block] = [text_block("".join(self.pieces))] if self.pieces else []
        content += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in self.calls]
        return Reply(content, self.stop_reason, self.usage)


class ScriptedModel:
    """Implements `octopus.model.ChatModel`; the last reply is repeated for ever."""

    def __init__(self, *script: Say) -> None:
        self.script = list(script) or [Say("All right.")]
        self.requests: list[ModelRequest] = []
        self.structured_replies: list[BaseModel | OctopusError] = []
        self.structured_requests: list[dict[str, Any]] = []
        self.counts: Callable[[ModelRequest], int] | None = None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[Say]:
        self.requests.append(request)
        yield self.script.pop(0) if len(self.script) > 1 else self.script[0]

    async def structured(self, **request: Any) -> Any:
        self.structured_requests.append(request)
        reply = self.structured_replies.pop(0)
        if isinstance(reply, OctopusError):
            raise reply
        return reply

    async def count_tokens(self, request: ModelRequest) -> int:
        if self.counts is None:
            raise ModelUnavailable
        return self.counts(request)
