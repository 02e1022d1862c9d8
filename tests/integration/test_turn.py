"""One turn against a real log: what is durable when, what a retry finds, what an error leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from octopus.agents.store import PostgresAgentStore
from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.tokens import count_tokens
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.types import Message, text_of
from octopus.episodic.types import Recollection
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
from octopus.memory_config import MemoryConfig
from octopus.procedural.types import Guidance
from octopus.read_phase import ReadPhase
from octopus.recall import Query, Scope
from octopus.semantic.types import Knowledge
from octopus.tools.types import Occasion, ToolCall, ToolSpec
from octopus.turn import TurnRunner
from octopus.turn_events import MemoryAssembled, Token, ToolResulted, TurnEnd, TurnError, TurnEvent, TurnStart
from octopus.turn_types import TurnPolicy, TurnRequest
from octopus.working.folding import Folding
from octopus.working.store import PostgresFactorStore
from octopus.working.token_factor import TokenFactors
from tests.support.embedder import WordEmbedder
from tests.support.model import Say, ScriptedModel
from tests.support.observer import RecordingObserver

ADA = Principal("acme", "ada")


class Memory:
    """A memory that finds nothing, fails or is late, as the test wants."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.error: Exception | None = None
        self.delay_s = 0.0

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Any:
        await asyncio.sleep(self.delay_s)
        if self.error:
            raise self.error
        return self.found


class Tools:
    """One tool that echoes; it can be told to hang."""

    def __init__(self) -> None:
        self.hang = False

    async def specs(self, scope: Scope) -> Sequence[ToolSpec]:
        return [ToolSpec("echo", "Says it again.", {"type": "object"})]

    async def call(self, scope: Scope, occasion: Occasion, call: ToolCall) -> str:
        if self.hang:
            await asyncio.Event().wait()
        return f"echo {call.arguments['what']}"


class House:
    """A turn runner with everything that a test wants to reach into."""

    def __init__(self, database: Database, embedder: WordEmbedder, agent: Agent) -> None:
        self.database = database
        self.agent = agent
        self.log = PostgresConversationLog(database)
        self.model = ScriptedModel()
        self.tools = Tools()
        self.observer = RecordingObserver()
        self.procedural, self.semantic, self.episodic = Memory(Guidance()), Memory(Knowledge()), Memory(Recollection())
        self.policy = TurnPolicy("test-model", 10_000, 30, 30, 1024)
        self.embedder = embedder

    def runner(self) -> TurnRunner:
        return TurnRunner(
            log=self.log,
            read_phase=ReadPhase(self.procedural, self.semantic, self.episodic, deadline_s=0.2, observer=self.observer),
            embedder=self.embedder,
            model=self.model,
            toolbox=self.tools,
            factors=TokenFactors(PostgresFactorStore(self.database), count_tokens, 1.25),
            folding=Folding(self.log, self.model),
            observer=self.observer,
            policy=self.policy,
        )

    def request(self, message: str, **kwargs: Any) -> TurnRequest:
        return TurnRequest(self.agent.agent_id, message, **kwargs)

    async def begin(self, message: str, caller: Principal = ADA, **kwargs: Any) -> AsyncIterator[TurnEvent]:
        return await self.runner().begin(caller, self.request(message, **kwargs))

    async def take(self, message: str, **kwargs: Any) -> list[TurnEvent]:
        return [event async for event in await self.begin(message, **kwargs)]

    async def messages(self, conversation_id: UUID) -> list[Message]:
        return await self.log.messages_between("acme", conversation_id, 1, 1_000)


@pytest.fixture
def house(database: Database, embedder: WordEmbedder, agent: Agent) -> House:
    return House(database, embedder, agent)


def start_of(events: list[TurnEvent]) -> TurnStart:
    assert isinstance(events[0], TurnStart)
    return events[0]


def said(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.role, text_of(message.content)) for message in messages]


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
    await _until(lambda: len(house.observer.traces) == 1)

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
    await _until(lambda: len(house.observer.traces) == 1)

    messages = await house.messages(start.conversation_id)
    assert said(messages) == [("user", "use it"), ("assistant", "Looking.")]
    assert all(block["type"] == "text" for message in messages for block in message.content)


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
    counts = "select (select count(*) from messages) + (select count(*) from conversations) + (select count(*) from turns) as n"
    row = await house.database.one("acme", counts)
    return row == {"n": 0}


async def _until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)
