"""One turn against a real log: what is durable when, what a retry finds, what an error leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from infra.local.postgres import with_server
from octopus.agents.store import PostgresAgentStore
from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.conversations.types import text_of
from octopus.errors import (
    BudgetExceeded,
    Conflict,
    DatabaseUnavailable,
    InvalidInput,
    MemoryUnavailable,
    ModelUnavailable,
    NotFound,
    TurnInProgress,
)
from octopus.identity import Principal
from octopus.recall import Scope
from octopus.tools.types import Occasion, ToolCall
from octopus.turn_events import MemoryAssembled, Token, ToolResulted, TurnEnd, TurnError, TurnEvent, TurnStart
from octopus.turn_types import TurnRequest
from tests.support.embedder import WordEmbedder
from tests.support.house import ADA, House, said, start_of, until
from tests.support.model import Say, ScriptedModel
from tests.support.schema import prepare


@pytest.fixture
def house(database: Database, embedder: WordEmbedder, agent: Agent) -> House:
    return House(database, embedder, agent)


async def test_a_turn_says_what_it_does_in_order_and_is_kept(house: House) -> None:
    house.model = ScriptedModel(Say("Hel", "lo."))

    events = await house.take("hi")

    assert [event.name for event in events] == ["turn_start", "memory", "token", "token", "turn_end"]
    start = start_of(events)
    messages = await house.messages(start.conversation_id)
    assert said(messages) == [("user", "hi"), ("assistant", "Hello.")]
    end = events[-1]
    assert isinstance(end, TurnEnd)
    assert (end.message_id, end.stop_reason) == (messages[1].message_id, "end_turn")
    assert house.observer.traces[0].usage.output_tokens == 10


async def test_the_message_is_durable_before_the_model_is_called(house: House) -> None:
    seen: list[list[tuple[str, str]]] = []

    class Spy(ScriptedModel):
        def stream(self, request: Any) -> Any:
            async def look() -> None:
                rows = await house.database.all("acme", "select content from messages")
                seen.append([("user", text_of(row["content"])) for row in rows])

            looking = asyncio.ensure_future(look())
            script = super().stream(request)

            class Waiting:
                async def __aenter__(self) -> Any:
                    await looking
                    return await script.__aenter__()

                async def __aexit__(self, *exc: Any) -> Any:
                    return await script.__aexit__(*exc)

            return Waiting()

    house.model = Spy()
    await house.take("keep me")
    assert seen == [[("user", "keep me")]]


async def test_history_comes_from_the_log(house: House) -> None:
    house.model = ScriptedModel(Say("one"), Say("two"))
    first = await house.take("first")
    await house.take("second", conversation_id=start_of(first).conversation_id)

    assert [(m["role"], m["content"][0]["text"]) for m in house.model.requests[1].messages] == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
    ]


async def test_the_same_message_id_gives_one_turn(house: House) -> None:
    house.model = ScriptedModel(Say("only once"))
    first = await house.take("hi", message_id="m1")
    again = await house.take("hi", message_id="m1")

    assert len(house.model.requests) == 1
    assert [event.name for event in again] == ["turn_start", "token", "turn_end"]
    assert (start_of(again).turn_id, start_of(again).replayed) == (start_of(first).turn_id, True)
    assert first[-1].data()["message_id"] == again[-1].data()["message_id"]
    assert len(await house.messages(start_of(first).conversation_id)) == 2


async def test_the_same_message_id_sent_twice_at_once_gives_one_turn(house: House) -> None:
    results = await asyncio.gather(*(house.take("hi", message_id="m1") for _ in range(5)), return_exceptions=True)

    refused = [result for result in results if isinstance(result, TurnInProgress)]
    assert len(refused) == 4
    assert all(error.retry_after for error in refused)
    assert [row["n"] for row in await house.database.all("acme", "select count(*) as n from turns")] == [1]


async def test_a_message_id_belongs_to_one_agent(house: House) -> None:
    await house.take("hi", message_id="m1")
    house.agent = await PostgresAgentStore(house.database).create_agent("acme", "other", "", "p", None, {})
    with pytest.raises(Conflict, match="another message"):
        await house.begin("hi", message_id="m1")


async def test_a_message_id_belongs_to_one_message(house: House) -> None:
    await house.take("hi", message_id="m1")
    with pytest.raises(Conflict, match="another message"):
        await house.begin("something else", message_id="m1")


async def test_two_turns_of_a_conversation_do_not_interleave(house: House) -> None:
    gate = asyncio.Event()
    first = await house.take("hello")
    conversation_id = start_of(first).conversation_id
    house.model = ScriptedModel(Say("slow", gate=gate))
    slow = await house.begin("one", conversation_id=conversation_id)
    await anext(slow)

    with pytest.raises(TurnInProgress):
        await house.begin("two", conversation_id=conversation_id)

    gate.set()
    assert [event async for event in slow][-1].name == "turn_end"
    house.model = ScriptedModel(Say("fast"))
    await house.take("two", conversation_id=conversation_id)
    assert [text for _, text in said(await house.messages(conversation_id))][2:] == ["one", "slow", "two", "fast"]


async def test_a_listener_who_goes_away_leaves_the_partial_answer(house: House) -> None:
    house.model = ScriptedModel(Say("half of ", "it", gate=asyncio.Event()))
    stream = await house.begin("hi", message_id="m1")
    start = await anext(stream)
    assert isinstance(start, TurnStart)
    while not isinstance(await anext(stream), Token):
        pass
    await stream.aclose()  # type: ignore[attr-defined]
    await until(lambda: len(house.observer.traces) == 1)

    messages = await house.messages(start.conversation_id)
    assert said(messages) == [("user", "hi"), ("assistant", "half of ")]
    assert messages[1].stop_reason == "cancelled"

    house.model = ScriptedModel(Say("all of it"))
    again = await house.take("hi", message_id="m1")
    assert start_of(again).turn_id == start.turn_id
    assert said(await house.messages(start.conversation_id)) == [("user", "hi"), ("assistant", "all of it")]


async def test_a_model_that_breaks_off_leaves_the_partial_answer_and_says_so(house: House) -> None:
    house.model = ScriptedModel(Say("half", error=ModelUnavailable()))
    events = await house.take("hi")

    assert isinstance(events[-1], TurnError)
    assert events[-1].data()["retryable"] is True
    messages = await house.messages(start_of(events).conversation_id)
    assert said(messages) == [("user", "hi"), ("assistant", "half")]
    assert messages[1].stop_reason == "error"


async def test_a_partial_answer_that_the_conversation_went_past_is_replayed(house: House) -> None:
    house.model = ScriptedModel(Say("half", error=ModelUnavailable()), Say("next"))
    first = await house.take("hi", message_id="m1")
    await house.take("go on", conversation_id=start_of(first).conversation_id)

    again = await house.take("hi", message_id="m1")

    assert [event.name for event in again] == ["turn_start", "token", "turn_end"]
    assert again[-1].data()["stop_reason"] == "error"


async def test_tools_run_and_their_results_stay_with_their_calls(house: House) -> None:
    house.model = ScriptedModel(
        Say("Let me look.", calls=[("c1", "echo", {"what": "a"}), ("c2", "echo", {})]), Say("Done.")
    )
    house.tools.call = _echo_or_fail  # type: ignore[method-assign]
    events = await house.take("use it")

    assert [event.name for event in events if event.name.startswith("tool")] == ["tool_call"] * 2 + ["tool_result"] * 2
    assert [event.is_error for event in events if isinstance(event, ToolResulted)] == [False, True]
    messages = await house.messages(start_of(events).conversation_id)
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert [block["tool_use_id"] for block in messages[2].content] == ["c1", "c2"]
    assert house.model.requests[1].messages[-1]["content"] == messages[2].content


async def _echo_or_fail(scope: Scope, occasion: Occasion, call: ToolCall) -> str:
    if "what" not in call.arguments:
        raise InvalidInput("what: is missing.")
    return str(call.arguments["what"])


async def test_cancelling_during_a_tool_leaves_no_orphan_call(house: House) -> None:
    house.model = ScriptedModel(Say("Looking.", calls=[("c1", "echo", {"what": "a"})]))
    house.tools.hang = True
    stream = await house.begin("use it")
    start = await anext(stream)
    assert isinstance(start, TurnStart)
    async for event in stream:
        if event.name == "tool_call":
            break
    await stream.aclose()  # type: ignore[attr-defined]
    await until(lambda: len(house.observer.traces) == 1)

    messages = await house.messages(start.conversation_id)
    assert said(messages) == [("user", "use it"), ("assistant", "Looking.")]
    assert all(block["type"] == "text" for message in messages for block in message.content)


async def test_a_call_that_was_cut_off_is_not_kept(house: House) -> None:
    house.model = ScriptedModel(Say("Let me", calls=[("c1", "echo", {})], stop_reason="max_tokens"), Say("ok"))
    first = await house.take("use it")
    await house.take("go on", conversation_id=start_of(first).conversation_id)

    assert said(await house.messages(start_of(first).conversation_id))[:2] == [
        ("user", "use it"),
        ("assistant", "Let me"),
    ]
    sent = [block["type"] for message in house.model.requests[1].messages for block in message["content"]]
    assert sent == ["text"] * 3


@pytest.mark.parametrize("odd", ["a\x00b", "\ud800", float("nan"), float("inf"), {"k\x00": ["\x00"]}])
async def test_odd_arguments_cost_neither_the_answer_nor_the_turn(house: House, odd: Any) -> None:
    house.model = ScriptedModel(Say(calls=[("c1", "echo", {"what": odd})]), Say("Done \ud800."))
    events = await house.take("use it")

    assert events[-1].name == "turn_end"
    messages = await house.messages(start_of(events).conversation_id)
    assert text_of(messages[-1].content) == "Done ?."


async def test_an_error_that_nobody_foresaw_keeps_what_was_said(house: House) -> None:
    bug = ZeroDivisionError("secret words")
    house.model = ScriptedModel(Say("half", error=bug))  # type: ignore[arg-type]
    events = await house.take("hi")

    assert events[-1].name == "error"
    assert "secret" not in str(events[-1].data())
    assert house.observer.failed == [bug]
    assert said(await house.messages(start_of(events).conversation_id)) == [("user", "hi"), ("assistant", "half")]


async def test_a_second_cancellation_does_not_cost_the_partial_answer(house: House) -> None:
    house.model = ScriptedModel(Say("half", gate=asyncio.Event()))
    stream = await house.begin("hi")
    start = await anext(stream)
    assert isinstance(start, TurnStart)
    while not isinstance(await anext(stream), Token):
        pass
    (task,) = [t for t in asyncio.all_tasks() if "_Answering.run" in repr(t)]
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await until(lambda: len(house.observer.traces) == 1)
    assert said(await house.messages(start.conversation_id)) == [("user", "hi"), ("assistant", "half")]


async def test_a_model_that_never_stops_calling_is_stopped(house: House) -> None:
    house.model = ScriptedModel(Say(calls=[("c1", "echo", {"what": "again"})]))
    events = await house.take("loop")

    assert len(house.model.requests) == 10
    assert events[-1].data()["stop_reason"] == "max_rounds"


@pytest.mark.parametrize(("delay_s", "error", "why"), [(1.0, None, "late"), (0.0, DatabaseUnavailable(), "failed")])
async def test_a_memory_that_is_late_or_fails_yields_nothing(
    house: House, delay_s: float, error: Exception | None, why: str
) -> None:
    house.semantic.delay_s, house.semantic.error = delay_s, error
    events = await house.take("hi")

    memory = events[1]
    assert isinstance(memory, MemoryAssembled)
    assert memory.degraded
    assert {section.name: section.degraded for section in memory.sections}["knowledge"] == why
    assert [report.name for report in house.observer.degraded] == ["semantic"]
    assert events[-1].name == "turn_end"


async def test_the_read_phase_takes_as_long_as_its_slowest_memory(house: House) -> None:
    for memory in (house.procedural, house.semantic, house.episodic):
        memory.delay_s = 0.1
    await house.take("hi")
    assert house.observer.traces[0].timings.read_ms < 200


async def test_all_memories_failing_is_an_error_and_nothing_is_written(house: House) -> None:
    for memory in (house.procedural, house.semantic, house.episodic):
        memory.error = DatabaseUnavailable()
    with pytest.raises(MemoryUnavailable):
        await house.begin("hi")
    assert await _nothing_written(house)


@pytest.mark.parametrize("message", ["", "  \n", "x" * 10_001, "a\x00b", "\ud800"])
async def test_a_message_that_cannot_be_taken_changes_nothing(house: House, message: str) -> None:
    with pytest.raises(InvalidInput, match="message"):
        await house.begin(message)
    assert await _nothing_written(house)


async def test_what_cannot_fit_is_refused_with_the_numbers(house: House) -> None:
    agents = PostgresAgentStore(house.database)
    tight = {"max_working_memory_tokens": 1_000, "output_reserve_tokens": 300, "reserved_for_current": 100}
    house.agent = await agents.create_agent("acme", "tight", "", "You are brief.", None, tight)
    with pytest.raises(BudgetExceeded, match="700 tokens"):
        await house.begin("word " * 1_500)
    assert await _nothing_written(house)


async def test_unknown_and_foreign_ids_are_not_found(house: House) -> None:
    first = start_of(await house.take("hi"))
    elsewhere = await PostgresAgentStore(house.database).create_agent("acme", "other", "", "p", None, {})
    for caller, request in [
        (ADA, TurnRequest(uuid4(), "hi")),
        (ADA, house.request("hi", conversation_id=uuid4())),
        (ADA, TurnRequest(elsewhere.agent_id, "hi", first.conversation_id)),
        (Principal("acme", "eve"), house.request("hi", conversation_id=first.conversation_id)),
        (Principal("other", "ada"), house.request("hi", conversation_id=first.conversation_id)),
    ]:
        with pytest.raises(NotFound):
            await house.runner().begin(caller, request)
    assert len(await house.messages(first.conversation_id)) == 2


async def test_a_turn_that_died_is_answered_by_its_retry(house: House) -> None:
    """The environment is gone without a word: the lease runs out, and the same request is taken up again."""
    house.policy = replace(house.policy, lease_s=0)
    house.model = ScriptedModel(Say("never kept", gate=asyncio.Event()))
    stream = await house.begin("hi", message_id="m1")
    start = await anext(stream)
    assert isinstance(start, TurnStart)
    (task,) = [t for t in asyncio.all_tasks() if "_Answering.run" in repr(t)]
    held, house.log.finish_turn = house.log.finish_turn, _dead  # type: ignore[method-assign, assignment]
    task.cancel()
    with pytest.raises(ZeroDivisionError):
        [event async for event in stream]
    house.log.finish_turn = held  # type: ignore[method-assign]
    house.model = ScriptedModel(Say("kept"))

    again = await house.take("hi", message_id="m1")

    assert start_of(again).turn_id == start.turn_id
    assert said(await house.messages(start.conversation_id)) == [("user", "hi"), ("assistant", "kept")]


async def _dead(*_: Any, **__: Any) -> bool:
    raise ZeroDivisionError


async def _nothing_written(house: House) -> bool:
    tables = ("messages", "conversations", "turns")
    return not any([await house.database.all("acme", f"select from {table}") for table in tables])


async def test_killing_the_database_in_the_middle_of_an_answer_loses_nothing(tmp_path: Path) -> None:
    with with_server(tmp_path / "data") as server:
        database = Database.at(await prepare(server), pool_size=4, connect_timeout_s=1.0)
        agent = await PostgresAgentStore(database).create_agent("acme", "aria", "", "p", None, {})
        gate = asyncio.Event()
        house = House(database, WordEmbedder(), agent)
        house.model = ScriptedModel(Say("the whole ", "answer", gate=gate), Say("next"))
        stream = await house.begin("keep me", message_id="m1")
        start = await anext(stream)
        assert isinstance(start, TurnStart)

        server.stop("immediate")
        gate.set()
        ending = asyncio.ensure_future(_rest(stream))
        await asyncio.sleep(1.5)
        server.start()

        assert (await ending)[-1].name == "turn_end"
        await house.take("go on", conversation_id=start.conversation_id)
        assert said(await house.messages(start.conversation_id)) == [
            ("user", "keep me"),
            ("assistant", "the whole answer"),
            ("user", "go on"),
            ("assistant", "next"),
        ]
        await database.close()


async def test_a_database_that_stays_away_costs_the_answer_but_not_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octopus.answer.KEEP_ATTEMPTS", 1)
    with with_server(tmp_path / "data") as server:
        database = Database.at(await prepare(server), pool_size=4, connect_timeout_s=1.0)
        agent = await PostgresAgentStore(database).create_agent("acme", "aria", "", "p", None, {})
        gate = asyncio.Event()
        house = House(database, WordEmbedder(), agent)
        house.policy = replace(house.policy, lease_s=1)
        house.model = ScriptedModel(Say("lost ", "answer", gate=gate), Say("second try"))
        stream = await house.begin("keep me", message_id="m1")
        start = await anext(stream)
        assert isinstance(start, TurnStart)

        server.stop("immediate")
        gate.set()
        events = await _rest(stream)
        server.start()

        assert events[-1].name == "error"
        assert events[-1].data()["retryable"] is True
        assert said(await house.messages(start.conversation_id)) == [("user", "keep me")]
        await asyncio.sleep(1.1)  # the lease of the turn that could not say goodbye
        await house.take("keep me", message_id="m1")
        assert said(await house.messages(start.conversation_id)) == [("user", "keep me"), ("assistant", "second try")]
        await database.close()


async def _rest(stream: AsyncIterator[TurnEvent]) -> list[TurnEvent]:
    return [event async for event in stream]
