"""Which blocks to answer a request with."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from infra.local.offline_model.memory import Kind, Quote, closest, question, quotes
from infra.local.offline_model.request import Json, blocks, text_of
from infra.local.offline_model.structured import fill, statements

PREFACE = "(offline model)"
NOTHING = "I was given nothing relevant to this, and I know nothing else."
MOST_QUOTES: dict[Kind, int] = {"knowledge": 2, "episode": 2, "history": 1}
LONGEST_RESULT = 500  # characters of a tool's result


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    id: str
    name: str
    arguments: Json


Block = Text | ToolUse
StopReason = Literal["end_turn", "tool_use"]


@dataclass(frozen=True, slots=True)
class Answer:
    id: str
    blocks: Sequence[Block]

    @property
    def stop_reason(self) -> StopReason:
        return "tool_use" if any(isinstance(block, ToolUse) for block in self.blocks) else "end_turn"


def answer(body: Json) -> Answer:
    """The answer to a valid request: the same for the same request, its ids too."""
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:24]
    called = _tools_to_call(body)
    if called:
        said = statements(body)
        uses = [
            ToolUse(f"toolu_{digest}{index:02}", tool["name"], fill(tool["input_schema"], said))
            for index, tool in enumerate(called)
        ]
        return Answer(f"msg_{digest}", uses)
    if schema := _output_schema(body):
        return Answer(f"msg_{digest}", [Text(json.dumps(fill(schema, statements(body))))])
    return Answer(f"msg_{digest}", [Text(f"{PREFACE} {_tool_results(body) or _quoted(body)}")])


def _tools_to_call(body: Json) -> list[Json]:
    """Tools that `tool_choice` forces, or that the user's last message asks for by name."""
    tools: list[Json] = body.get("tools", [])
    choice = body.get("tool_choice") or {"type": "auto"}
    asked = question(body["messages"])
    wanted = [
        tool for tool in tools if re.search(rf"\b(?:use|call|run)\b.*\b{re.escape(tool['name'])}\b", asked, re.I | re.S)
    ]
    match choice["type"]:
        case "tool":
            return [tool for tool in tools if tool["name"] == choice["name"]]
        case "any":
            return wanted or tools[:1]
        case "auto" if not _results(body):
            return wanted
        case _:
            return []


def _output_schema(body: Json) -> Json | None:
    output = (body.get("output_config") or {}).get("format") or {}
    return output.get("schema")


def _results(body: Json) -> list[Json]:
    return [block for block in blocks(body["messages"][-1]["content"]) if block["type"] == "tool_result"]


def _tool_results(body: Json) -> str:
    """What the tools of the last message answered, if it brings results."""
    names = {
        block["id"]: block["name"]
        for message in body["messages"]
        for block in blocks(message["content"])
        if block["type"] == "tool_use"
    }
    told = []
    for result in _results(body):
        verb = "failed" if result.get("is_error") else "answered"
        text = text_of(result.get("content") or "") or "nothing"
        told.append(f"The tool {names[result['tool_use_id']]} {verb}: {text[:LONGEST_RESULT]}")
    return "\n".join(told)


def _quoted(body: Json) -> str:
    """The question answered by quotation alone."""
    asked, found = question(body["messages"]), list(quotes(body))
    lines = []
    steps = [quote for quote in found if quote.kind == "procedure"]
    if steps:
        lines.append(f"The procedure {steps[0].source} applies. " + " ".join(step.text for step in steps))
    for kind, most in MOST_QUOTES.items():
        candidates = [quote for quote in found if quote.kind == kind]
        lines += [_told(quote) for quote in closest(candidates, asked, most=most)]
    return "\n".join(lines) or NOTHING


def _told(quote: Quote) -> str:
    match quote.kind:
        case "knowledge":
            return f"{quote.source} says: “{quote.text}”"
        case "episode":
            return f"From a past conversation on {quote.source}: “{quote.text}”"
        case _:
            return f"Earlier in this conversation: “{quote.text}”"
