"""The shape of a Messages API request, and what the API refuses."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

MOST_BREAKPOINTS = 4  # blocks with cache_control in one request


class InvalidRequest(Exception):
    """The request breaks a rule of the Messages API: HTTP 400, `invalid_request_error`."""


def blocks(content: str | list[Json]) -> list[Json]:
    """The content of a message or of `system` as blocks: a plain string is one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text_of(content: str | list[Json]) -> str:
    """The text blocks of some content, or of a tool's result, as one string."""
    return "\n".join(block["text"] for block in blocks(content) if block["type"] == "text")


def check(body: Json, *, generates: bool = True) -> None:
    """Raise `InvalidRequest` if the API would refuse `body`. Counting tokens needs no `max_tokens`."""
    if not isinstance(body.get("model"), str):
        raise InvalidRequest("model: Field required")
    if generates and (not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1):
        raise InvalidRequest("max_tokens: Input should be a valid integer greater than or equal to 1")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(index, message)
    if messages[0]["role"] != "user":
        raise InvalidRequest('messages: first message must use the "user" role')
    _check_tool_results(messages)
    _check_choice(body)
    _check_breakpoints(body)


def _check_message(index: int, message: Json) -> None:
    if message.get("role") not in ("user", "assistant"):
        raise InvalidRequest(f"messages.{index}.role: Input should be 'user' or 'assistant'")
    content = message.get("content")
    if not isinstance(content, str | list) or not content:
        raise InvalidRequest(f"messages.{index}: all messages must have non-empty content")
    for block in blocks(content):
        if block.get("type") == "text" and not block.get("text", "").strip():
            raise InvalidRequest(f"messages.{index}: text content blocks must contain non-whitespace text")


def _check_tool_results(messages: list[Json]) -> None:
    """Each `tool_use` must be answered in the very next message, and each `tool_result` must answer one."""
    asked: set[str] = set()
    for index, message in enumerate([*messages, {"content": []}]):
        content = blocks(message["content"])
        answered = {block["tool_use_id"] for block in content if block["type"] == "tool_result"}
        if missing := sorted(asked - answered):
            raise InvalidRequest(
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(missing)}"
            )
        if unexpected := sorted(answered - asked):
            raise InvalidRequest(
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(unexpected)}"
            )
        asked = {block["id"] for block in content if block["type"] == "tool_use"}


def _check_choice(body: Json) -> None:
    choice = body.get("tool_choice") or {}
    names = {tool["name"] for tool in body.get("tools", [])}
    if choice.get("type") in ("any", "tool") and not names:
        raise InvalidRequest("tool_choice: may only be specified while providing tools")
    if choice.get("type") == "tool" and choice.get("name") not in names:
        raise InvalidRequest(f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")


def _check_breakpoints(body: Json) -> None:
    content = [*body.get("tools", []), *blocks(body.get("system") or [])]
    for message in body["messages"]:
        content += blocks(message["content"])
    found = sum("cache_control" in part for part in [body, *content])
    if found > MOST_BREAKPOINTS:
        raise InvalidRequest(
            f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {found}."
        )
