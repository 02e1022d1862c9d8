"""What the provider does wrong, over a real socket, and what a turn is told: try again, or that it is no use."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from anthropic import AsyncAnthropic, AsyncAnthropicBedrock
from pydantic import BaseModel

from octopus.cloud.anthropic_model import AnthropicModel
from octopus.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable, OctopusError
from octopus.model import ModelRequest
from tests.support.endpoint import Endpoint, Received, listening, response

PRIVATE = "account 4711 said: my password is"  # the provider's own words may quote prompt or account
REQUEST = ModelRequest("claude-test", [], [{"role": "user", "content": "hello"}], 100)


@pytest.fixture
async def provider() -> AsyncIterator[Endpoint]:
    async with listening() as provider:
        yield provider


def model(provider: Endpoint) -> AnthropicModel:
    async def client() -> AsyncAnthropic:
        return AsyncAnthropic(api_key="k", base_url=f"http://127.0.0.1:{provider.port}", max_retries=0, timeout=5)

    return AnthropicModel(client, summary_model="claude-test")


async def streamed(provider: Endpoint) -> tuple[str, OctopusError]:
    """What was said before the error, and the error."""
    said: list[str] = []

    async def listen() -> None:
        async with model(provider).stream(REQUEST) as stream:
            async for text in stream:
                said.append(text)  # noqa: PERF401, for it is wanted of a stream that fails

    with pytest.raises(OctopusError) as caught:
        await listen()
    assert PRIVATE not in caught.value.detail
    return "".join(said), caught.value


def problem(kind: str) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": PRIVATE}})


def event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | data)}\n\n"


HEL_LO = (
    event(
        "message_start",
        message={
            "id": "m", "type": "message", "role": "assistant", "model": "claude-test", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
        },
    )
    + event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    + event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"})
    + event("content_block_delta", index=0, delta={"type": "text_delta", "text": "lo"})
)  # fmt: skip


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        ("529 Overloaded", "overloaded_error", ModelUnavailable),
        ("503 Service Unavailable", "api_error", ModelUnavailable),
        ("500 Internal Server Error", "api_error", ModelUnavailable),
        ("429 Too Many Requests", "rate_limit_error", ModelUnavailable),
        ("408 Request Timeout", "timeout_error", ModelUnavailable),
        ("400 Bad Request", "invalid_request_error", ModelRefused),
        ("401 Unauthorized", "authentication_error", ModelRefused),
        ("403 Forbidden", "permission_error", ModelRefused),
        ("404 Not Found", "not_found_error", ModelRefused),
        ("413 Request Entity Too Large", "request_too_large", ModelRefused),
    ],
)
async def test_a_status_says_whether_a_retry_helps(
    provider: Endpoint, status: str, kind: str, error: type[OctopusError]
) -> None:
    provider.says(problem(kind), status, Content_Type="application/json")
    said, caught = await streamed(provider)
    assert (said, type(caught)) == ("", error)
    assert len(provider.received) == 1
    assert ("API key" in caught.detail) is (kind in ("authentication_error", "permission_error"))


@pytest.mark.parametrize(("header", "seconds"), [({"Retry_After": "7"}, 7), ({"Retry_After": "soon"}, 2), ({}, 2)])
async def test_the_provider_says_when_to_retry(provider: Endpoint, header: dict[str, str], seconds: int) -> None:
    provider.says(problem("rate_limit_error"), "429 Too Many Requests", **header)
    _, caught = await streamed(provider)
    assert caught.retry_after == seconds


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("<html>Bad gateway</html>", "502 Bad Gateway"),
        ("[1]", "503 Service Unavailable"),
        ('{"error": "no"}', "500 No"),
    ],
)
async def test_an_error_without_the_providers_document_is_passing_all_the_same(
    provider: Endpoint, body: str, status: str
) -> None:
    provider.says(body, status)
    assert isinstance((await streamed(provider))[1], ModelUnavailable)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", ModelUnavailable),
        ("api_error", ModelUnavailable),
        ("rate_limit_error", ModelUnavailable),
        ("an_error_of_tomorrow", ModelUnavailable),
        ("invalid_request_error", ModelRefused),
        ("permission_error", ModelRefused),
    ],
)
async def test_an_error_within_a_stream_comes_after_what_was_said(
    provider: Endpoint, kind: str, error: type[OctopusError]
) -> None:
    """It has the status 200 of the stream: the type alone says whether a retry helps."""
    provider.says(HEL_LO + event("error", error={"type": kind, "message": PRIVATE}), Content_Type="text/event-stream")
    said, caught = await streamed(provider)
    assert (said, type(caught)) == ("Hello", error)
    assert kind in caught.detail


@pytest.mark.parametrize(
    "rest",
    [
        "",
        event("ping"),
        "event: content_block_delta\ndata: {broken\n\n",
        event("content_block_delta", index=9, delta={"type": "text_delta", "text": "?"}),
    ],
)
async def test_a_stream_that_breaks_off_can_be_retried(provider: Endpoint, rest: str) -> None:
    provider.says(HEL_LO + rest, Content_Type="text/event-stream")
    said, caught = await streamed(provider)
    assert (said, type(caught)) == ("Hello", ModelUnavailable)


@pytest.mark.parametrize("cut", [0, 20])
async def test_a_connection_that_is_cut_can_be_retried(provider: Endpoint, cut: int) -> None:
    async def answer(_: Received) -> bytes:
        whole = response((HEL_LO + " " * 100).encode(), Content_Type="text/event-stream")
        return whole[: len(whole) - cut] if cut else b""

    provider.answer = answer
    assert isinstance((await streamed(provider))[1], ModelUnavailable)


@pytest.mark.parametrize(
    "body", ["<html>Sign in to the network</html>", HEL_LO.partition("\n\n")[2], event("message_start", message={}), ""]
)
async def test_something_else_than_a_stream_can_be_retried(provider: Endpoint, body: str) -> None:
    provider.says(body, Content_Type="text/event-stream")
    assert isinstance((await streamed(provider))[1], ModelUnavailable)


async def test_bedrock_that_cannot_count_refuses_like_any_provider() -> None:
    """The SDK says so by an error that is none of its API errors; a turn lives with `ModelRefused`."""

    async def bedrock() -> AsyncAnthropic:
        return cast("AsyncAnthropic", AsyncAnthropicBedrock(aws_region="us-east-1"))

    with pytest.raises(ModelRefused, match="AnthropicError"):
        await AnthropicModel(bedrock, summary_model="claude-test").count_tokens(REQUEST)


class Verdict(BaseModel):
    good: bool


@pytest.mark.parametrize(
    "content",
    [[], [{"type": "text", "text": "yes"}], [{"type": "tool_use", "id": "t", "name": "Verdict", "input": {}}]],
)
async def test_arguments_that_do_not_validate_are_told_apart(provider: Endpoint, content: list[Any]) -> None:
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "claude-test", "content": content,
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
    }  # fmt: skip
    provider.says(json.dumps(message), Content_Type="application/json")
    with pytest.raises(ModelReplyInvalid):
        await model(provider).structured(
            model=None, system="You.", messages=REQUEST.messages, schema=Verdict, max_tokens=9
        )
