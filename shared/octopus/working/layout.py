"""Where each section goes in a request of the Messages API, and where the provider may cache.

`documented`: system prompt, procedure | knowledge, episodes, history, message.
`cache`:      system prompt | history, procedure, knowledge, episodes, message.

What stands before the bar is the request's `system`, the rest its messages. The provider caches by byte prefix: in
`documented` whatever follows the first recalled section is new on every turn; in `cache` nothing volatile stands before
or within the history, so tools, system prompt and history are read from the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from octopus.conversations.types import Block, Message, text_block
from octopus.working.sections import SUMMARY_HEADER

_CACHED = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True)
class Parts:
    """The sections as text; an empty one is None and leaves no trace."""

    system_prompt: str
    procedure: str | None
    knowledge: str | None
    episodes: str | None
    summary: str | None
    history: Sequence[Message]
    message: str


@dataclass(frozen=True, slots=True)
class Breakpoints:
    """Whether the prefix up to the end of the system prompt, and of the history, is long enough to be cached."""

    system: bool
    history: bool


Layout = Literal["documented", "cache"]


def lay_out(parts: Parts, layout: Layout, breakpoints: Breakpoints) -> tuple[list[Block], list[dict[str, Any]]]:
    """`system` and `messages` of the request."""
    system = [text_block(parts.system_prompt)]
    if breakpoints.system:
        system[0]["cache_control"] = _CACHED
    recalled = [text_block(text) for text in (parts.knowledge, parts.episodes) if text]
    procedure = [text_block(parts.procedure)] if parts.procedure else []
    history = _history(parts)
    if layout == "documented":
        system += procedure
        before, after = recalled, []
    else:
        before, after = [], procedure + recalled
    past = _alternating([("user", before), *history])
    if breakpoints.history and past:
        past[-1]["content"][-1] = {**past[-1]["content"][-1], "cache_control": _CACHED}
    return system, _alternating([*_pairs(past), ("user", [*after, text_block(parts.message)])])


def _history(parts: Parts) -> Iterable[tuple[str, list[Block]]]:
    if parts.summary:
        yield "user", [text_block(SUMMARY_HEADER + parts.summary)]
    for message in parts.history:
        yield ("assistant" if message.role == "assistant" else "user"), message.content


def _pairs(messages: Iterable[dict[str, Any]]) -> Iterable[tuple[str, list[Block]]]:
    return ((message["role"], message["content"]) for message in messages)


def _alternating(pieces: Iterable[tuple[str, list[Block]]]) -> list[dict[str, Any]]:
    """Messages of alternating roles: neighbours of one role become one message, empty ones none."""
    messages: list[dict[str, Any]] = []
    for role, content in pieces:
        if not content:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] = [*messages[-1]["content"], *content]
        else:
            messages.append({"role": role, "content": list(content)})
    return messages
