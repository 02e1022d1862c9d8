"""The offline model as the SDK sees it: the Messages API, with answers that quote what was given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
import httpx2
import jsonschema
import pytest
from anthropic import AsyncAnthropic

from infra.local.processes import free_port, start_module, stop, wait_for

MODEL = "claude-any-model"
PROMPT = """You are Aria.

[Procedure: onboard_vendor]
Onboard a new vendor.
Follow these steps exactly:
Step 1: Ask for the vendor's name.
Step 2: (Optional) Look the vendor up. [Only if: it may exist]
  → Use tool: vendor_lookup

[Retrieved Knowledge]
Passages quoted from documents, to answer questions about leave and lunch.
Source: hr-policy.md
# Leave
Annual leave entitlement is 25 days
per calendar year. Unused leave expires in March.
---
Source: canteen.pdf
Lunch is served from noon.
---

[Past Conversation Context]
Relevant past conversations with this user, oldest first.
- 2025-03-14: The user wants to travel. The user prefers leave in June.
  • The user's dog is called Rex.
"""
LOOKUP = {
    "name": "vendor_lookup",
    "description": "Find a vendor.",
    "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
EPISODE = {
    "name": "episode",
    "description": "Record the episode.",
    "input_schema": {
        "type": "object",
        "$defs": {
            "fact": {
                "type": "object",
                "properties": {
                    "position": {"type": "integer", "minimum": 1, "maximum": 8},
                    "messages": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
                    "text": {"type": "string", "minLength": 1, "maxLength": 60},
                    "kind": {"enum": ["preference", "event"]},
                    "certain": {"type": "boolean"},
                    "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                },
                "required": ["position", "messages", "text", "kind", "certain", "note"],
                "additionalProperties": False,
            }
        },
        "properties": {
            "summary": {"type": "string", "maxLength": 500},
            "key_facts": {"type": "array", "items": {"$ref": "#/$defs/fact"}, "minItems": 1, "maxItems": 3},
            "importance": {"type": "number", "minimum": 0, "maximum": 0.5},
        },
        "required": ["summary", "key_facts", "importance"],
        "additionalProperties": False,
    },
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("offline_model") / "log"
    port = free_port()
    server = start_module(
        "infra.local.offline_model", str(port), log=log, environment={"OCTOPUS_OFFLINE_DELAY_MS": "0"}
    )
    address = f"http://127.0.0.1:{port}"
    wait_for(f"{address}/healthz", server, log)
    yield address
    stop(server)


@pytest.fixture
async def client(address: str) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=address, api_key="offline", max_retries=0) as client:
        yield client


async def ask(client: AsyncAnthropic, message: str, **options: Any) -> anthropic.types.Message:
    options = {"max_tokens": 1000, "messages": [{"role": "user", "content": message}], **options}
    return await client.messages.create(model=MODEL, **options)


def text(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def arguments(message: anthropic.types.Message) -> Any:
    [use] = [block for block in message.content if block.type == "tool_use"]
    return use.input


# What it says


async def test_it_quotes_the_sentence_closest_to_the_question_from_each_memory(
    client: AsyncAnthropic,
) -> None:
    answer = text(await ask(client, "How many days of annual leave may I take in June?", system=PROMPT))
    assert answer.startswith("(offline model) ")
    assert "hr-policy.md says: “Annual leave entitlement is 25 days per calendar year.”" in answer
    assert "From a past conversation on 2025-03-14: “The user prefers leave in June.”" in answer
    assert "procedure onboard_vendor applies. Step 1: Ask for the vendor's name. Step 2: (Optional)" in answer
    assert "Lunch" not in answer


async def test_it_quotes_sections_wherever_they_stand(client: AsyncAnthropic) -> None:
    messages = [
        {"role": "user", "content": "I work in Bern."},
        {"role": "assistant", "content": "Noted."},
        {
            "role": "user",
            "content": [{"type": "text", "text": PROMPT}, {"type": "text", "text": "When is lunch?"}],
        },
    ]
    assert "canteen.pdf says: “Lunch is served from noon.”" in text(await ask(client, "", messages=messages))


async def test_it_quotes_a_remembered_fact_with_the_date_of_its_session(client: AsyncAnthropic) -> None:
    answer = text(await ask(client, "What is my dog called?", system=PROMPT))
    assert "From a past conversation on 2025-03-14: “The user's dog is called Rex.”" in answer


async def test_it_quotes_what_the_user_said_earlier(client: AsyncAnthropic) -> None:
    messages = [
        {"role": "user", "content": "My office is in Bern."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Where is my office?"},
    ]
    assert "Earlier in this conversation: “My office is in Bern.”" in text(await ask(client, "", messages=messages))


@pytest.mark.parametrize("system", ["You are Aria.", PROMPT.replace("[Procedure", "Procedure")])
async def test_it_says_that_it_was_given_nothing_relevant(client: AsyncAnthropic, system: str) -> None:
    answer = text(await ask(client, "What is the boiling point of helium?", system=system))
    assert answer == "(offline model) I was given nothing relevant to this, and I know nothing else."


async def test_the_same_request_gets_the_same_answer(client: AsyncAnthropic) -> None:
    first, second = [await ask(client, "Annual leave?", system=PROMPT) for _ in range(2)]
    assert first == second


# Streaming


async def test_a_stream_has_the_events_of_the_api_in_their_order(address: str) -> None:
    body = {"model": MODEL, "max_tokens": 3, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    async with httpx2.AsyncClient(base_url=address, headers={"x-api-key": "offline"}) as http:
        lines = (await http.post("/v1/messages", json=body)).text.splitlines()
    assert [line.removeprefix("event: ") for line in lines if line.startswith("event: ")] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


async def test_a_stream_adds_up_to_the_whole_answer(client: AsyncAnthropic) -> None:
    whole = await ask(client, "Annual leave?", system=PROMPT)
    messages: Any = [{"role": "user", "content": "Annual leave?"}]
    async with client.messages.stream(model=MODEL, max_tokens=1000, system=PROMPT, messages=messages) as stream:
        pieces = [piece async for piece in stream.text_stream]
        final = await stream.get_final_message()
    assert len(pieces) == final.usage.output_tokens > 10
    assert "".join(pieces) == text(final) == text(whole)
    assert final.usage == whole.usage
    assert final.stop_reason == whole.stop_reason == "end_turn"


@pytest.mark.parametrize("limit", [1, 5])
async def test_max_tokens_cuts_the_answer(client: AsyncAnthropic, limit: int) -> None:
    answer = await ask(client, "Annual leave?", system=PROMPT, max_tokens=limit)
    assert answer.stop_reason == "max_tokens"
    assert answer.usage.output_tokens == limit


# Tools


async def test_it_calls_a_tool_that_the_user_names_and_reports_its_result(client: AsyncAnthropic) -> None:
    asked = {"role": "user", "content": "Please use the tool vendor_lookup for TechCorp."}
    options: Any = {"model": MODEL, "max_tokens": 1000, "tools": [LOOKUP]}
    async with client.messages.stream(**options, messages=[asked]) as stream:
        message = await stream.get_final_message()
    assert message.stop_reason == "tool_use"
    [use] = [block for block in message.content if block.type == "tool_use"]
    assert (use.name, use.input) == ("vendor_lookup", {"name": asked["content"]})

    result = {"type": "tool_result", "tool_use_id": use.id, "content": "TechCorp is vendor 17."}
    follow_up: Any = [asked, message.to_param(), {"role": "user", "content": [result]}]
    answer = await client.messages.create(**options, messages=follow_up)
    assert text(answer) == "(offline model) The tool vendor_lookup answered: TechCorp is vendor 17."
    assert answer.stop_reason == "end_turn"


async def test_it_calls_no_tool_unasked(client: AsyncAnthropic) -> None:
    answer = await ask(client, "What is vendor_lookup?", tools=[LOOKUP])
    assert answer.stop_reason == "end_turn"


async def test_forced_arguments_satisfy_the_schema_and_come_from_the_user(client: AsyncAnthropic) -> None:
    transcript = (
        "<transcript>\nUser [3, Friday 2026-11-20]: I live in Bern. How are you?\nAssistant [4, Friday]: Fine.\n"
        "User [7, Friday 2026-11-20]: My team\n  has nine people.\n</transcript>"
    )
    choice = {"type": "tool", "name": "episode"}
    episode = arguments(await ask(client, transcript, tools=[LOOKUP, EPISODE], tool_choice=choice))
    jsonschema.validate(episode, EPISODE["input_schema"])  # type: ignore[arg-type]
    assert [(fact["messages"], fact["text"]) for fact in episode["key_facts"]] == [
        ([3], "I live in Bern."),
        ([7], "My team has nine people."),
    ]
    assert "I live in Bern." in episode["summary"]
    assert "Fine" not in str(episode)


async def test_a_summary_that_is_extended_keeps_what_it_had(client: AsyncAnthropic) -> None:
    asked = "Summary so far:\nThe user lives in Bern.\n\nNew part:\nuser: My team has nine people.\nassistant: Good."
    episode = arguments(await ask(client, asked, tools=[EPISODE], tool_choice={"type": "any"}))
    assert "The user lives in Bern. My team has nine people." in episode["summary"]


async def test_structured_output_is_json_of_the_schema(client: AsyncAnthropic) -> None:
    output = {"format": {"type": "json_schema", "schema": EPISODE["input_schema"]}}
    answer = await ask(client, "I live in Bern.", output_config=output)
    jsonschema.validate(httpx2.Response(200, text=text(answer)).json(), EPISODE["input_schema"])  # type: ignore[arg-type]


# Errors


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "user", "content": "  "}]}, "non-whitespace"),
        ({"messages": [{"role": "system", "content": "Hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "first message"),
        ({"extra_body": {"max_tokens": None}}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tool_choice": {"type": "tool", "name": "absent"}, "tools": [LOOKUP]}, "absent"),
        ({"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 5}, "Found 5"),
    ],
)
async def test_what_the_api_refuses_is_refused(client: AsyncAnthropic, change: Any, complaint: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=complaint) as caught:
        await ask(client, "Hi", **change)
    assert caught.value.body["error"]["type"] == "invalid_request_error"  # type: ignore[index]


@pytest.mark.parametrize("answered", [None, "toolu_other"])
async def test_a_tool_call_must_be_answered_by_its_id(client: AsyncAnthropic, answered: str | None) -> None:
    messages: list[Any] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "x", "input": {}}]},
    ]
    if answered:
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": answered}]})
    with pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks"):
        await ask(client, "", messages=messages)


async def test_a_request_without_a_key_is_unauthenticated(address: str) -> None:
    async with httpx2.AsyncClient(base_url=address) as http:
        answer = await http.post("/v1/messages", json={})
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, anthropic.RateLimitError), (500, anthropic.InternalServerError), (529, anthropic.APIStatusError)],
)
async def test_a_failure_on_demand_happens_as_often_as_asked(
    client: AsyncAnthropic, address: str, status: int, error: type[anthropic.APIStatusError]
) -> None:
    async with httpx2.AsyncClient(base_url=address) as http:
        await http.post("/offline/fail", json={"status": status, "times": 2})
    for _ in range(2):
        with pytest.raises(error) as caught:
            await ask(client, "Hi")
        assert caught.value.status_code == status
    assert (await ask(client, "Hi")).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("status", "error"),
    [(529, anthropic.APIStatusError), (None, (anthropic.APIConnectionError, httpx2.RemoteProtocolError))],
)
async def test_a_stream_fails_after_the_tokens_asked_for(
    client: AsyncAnthropic, address: str, status: int | None, error: Any
) -> None:
    async with httpx2.AsyncClient(base_url=address) as http:
        await http.post("/offline/fail", json={"status": status, "after_tokens": 3})
    messages: Any = [{"role": "user", "content": "Hi"}]
    async with client.messages.stream(model=MODEL, max_tokens=1000, messages=messages) as stream:
        pieces = [await anext(stream.text_stream) for _ in range(3)]
        with pytest.raises(error):
            await anext(stream.text_stream)
    assert "".join(pieces) == "(offline model) I"


# Usage


async def cached(client: AsyncAnthropic, *parts: str, marked: int = 0) -> tuple[int, int, int]:
    system: Any = [{"type": "text", "text": part} for part in parts]
    system[marked]["cache_control"] = {"type": "ephemeral"}
    usage = (await ask(client, "Hi", system=system)).usage
    return usage.input_tokens, usage.cache_creation_input_tokens or 0, usage.cache_read_input_tokens or 0


async def test_a_marked_prefix_is_written_once_and_then_read(client: AsyncAnthropic) -> None:
    uncached, written, read = await cached(client, "once " * 1000, "tail")
    assert (written, read) == (1252, 0)
    assert await cached(client, "once " * 1000, "tail and more") == (uncached + 2, 0, 1252)


async def test_a_changed_byte_in_the_prefix_is_a_miss(client: AsyncAnthropic) -> None:
    await cached(client, "byte " * 1000)
    _, written, read = await cached(client, "Byte " + "byte " * 999)
    assert (written, read) == (1252, 0)


async def test_a_longer_prefix_reads_the_shorter_one(client: AsyncAnthropic) -> None:
    await cached(client, "long " * 1000)
    _, written, read = await cached(client, "long " * 1000, "more " * 100, marked=1)
    assert (written, read) == (127, 1252)


async def test_a_short_prefix_is_not_cached(client: AsyncAnthropic) -> None:
    for _ in range(2):
        _, written, read = await cached(client, "word " * 100)
        assert (written, read) == (0, 0)


async def test_counted_tokens_are_those_of_the_usage(client: AsyncAnthropic) -> None:
    messages: Any = [{"role": "user", "content": "word " * 100}]
    counted = await client.messages.count_tokens(model=MODEL, messages=messages, tools=[LOOKUP])  # type: ignore[list-item]
    used = await ask(client, "", messages=messages, tools=[LOOKUP])
    assert counted.input_tokens == used.usage.input_tokens > 100
