"""What was done in a session: its tool calls, as far as they show a way to work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from octopus.conversations.types import Block, Message, text_of
from octopus.redaction import redacted

# How a session ends is not part of how its task is done.
NO_STEPS = frozenset({"close_session"})
LONGEST_TEXT = 1_000  # characters of one line of a transcript
LONGEST_RESULT = 300
MOST_LINES = 300


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A tool call with its result. `seq` is the message that made it."""

    seq: int
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    result: str
    succeeded: bool


def made_calls(messages: Iterable[Message]) -> list[MadeCall]:
    """The calls of a session that have a result, in order."""
    asked: dict[str, tuple[int, Block]] = {}
    made = []
    for message in messages:
        for block in message.content:
            if block["type"] == "tool_use":
                asked[block["id"]] = message.seq, block
            elif block["type"] == "tool_result" and block["tool_use_id"] in asked:
                seq, use = asked.pop(block["tool_use_id"])
                result, succeeded = _result(block), not block.get("is_error")
                made.append(MadeCall(seq, use["id"], use["name"], use["input"], result, succeeded))
    return made


def longest_run(calls: Iterable[MadeCall]) -> list[MadeCall]:
    """The longest sequence of calls that all succeeded; the later one of two that are equally long."""
    best: list[MadeCall] = []
    run: list[MadeCall] = []
    for call in calls:
        if call.name in NO_STEPS:
            continue
        run = [*run, call] if call.succeeded else []
        if len(run) >= len(best):
            best = run
    return best


def request_of(messages: Iterable[Message], run: Sequence[MadeCall]) -> Message | None:
    """What the user asked for when the run began."""
    asked = [message for message in messages if message.role == "user" and message.seq < run[0].seq]
    return asked[-1] if asked else None


def transcript(messages: Iterable[Message], run: Sequence[MadeCall]) -> str:
    """The session from the run's request on, for a model to read; the calls of the run are numbered from 1.

    Further lines of a text are indented, so that none can pose as a speaker's.
    """
    numbers = {call.call_id: number for number, call in enumerate(run, start=1)}
    made = {call.call_id: call for call in run}
    lines: list[str] = []
    for message in messages:
        if message.role != "tool" and (text := text_of(message.content).strip()):
            lines.append(f"{message.role.capitalize()} [{message.seq}]: {_indented(text, LONGEST_TEXT)}")
        for block in message.content:
            if block["type"] == "tool_use" and (call := made.get(block["id"])):
                said = f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)}) answered {call.result}"
                lines.append(f"Tool [{call.seq}]: call {numbers[call.call_id]}: {_indented(said, LONGEST_TEXT)}")
    return "\n".join(lines[-MOST_LINES:])


def without_personal_data(messages: Sequence[Message]) -> list[Message]:
    """The messages with personal data replaced in what was said and in what tools were given and answered."""
    texts = iter(redacted([text for message in messages for text in _strings([*map(_open, message.content)])]))
    return [replace(m, content=[block | _replaced(_open(block), texts) for block in m.content]) for m in messages]


def _open(block: Block) -> dict[str, Any]:
    """What of a block can hold personal data: ids and names of tools stay, for calls and results go by them."""
    return {key: block[key] for key in ("text", "input", "content") if key in block}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(part)


def _replaced(value: Any, texts: Iterator[str]) -> Any:
    """`value` with its strings replaced by `texts`, in the order of `_strings`."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, dict):
        return {key: _replaced(part, texts) for key, part in value.items()}
    return [_replaced(part, texts) for part in value] if isinstance(value, list) else value


def _result(block: Block) -> str:
    content = block.get("content") or ""
    text = content if isinstance(content, str) else text_of(content)
    return text[:LONGEST_RESULT]


def _indented(text: str, limit: int) -> str:
    return text[:limit].replace("\n", "\n  ").replace("</session", "<\\/session")
