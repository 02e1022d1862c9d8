"""The toolbox of an agent: whatever a tool does, the model gets a result, and the call is on record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

import pytest

from octopus.agents.registry import AgentRegistry
from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import Database
from octopus.cloud.tokens import count_tokens
from octopus.cloud.tool_targets import ToolEndpoints
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.types import NewMessage, NewTurn, text_block
from octopus.errors import Conflict, DatabaseUnavailable, Forbidden, InvalidInput, NotFound
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig
from octopus.procedural.types import Step
from octopus.recall import Query, Scope, Score
from octopus.semantic.types import Knowledge, RecalledChunk
from octopus.tools.builtin import NOTHING_FOUND, BuiltIn, close_session, search_knowledge
from octopus.tools.loop import run_calls
from octopus.tools.registry import MAX_TOOLS, ToolRegistry
from octopus.tools.store import PostgresToolStore
from octopus.tools.toolbox import AgentToolBox, capped
from octopus.tools.types import AgentTool, HttpsTarget, LambdaTarget, Occasion, ToolCall, ToolFailed, ToolOutcome
from tests.support.embedder import WordEmbedder
from tests.support.procedures import procedure

ROOT = Principal("acme", "root", frozenset({Role.ADMIN}))
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
Answer = Callable[[Mapping[str, Any]], Awaitable[str]]


class Targets:
    """Runs functions of the test instead of AWS's: by the name of the function, less its prefix."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.received: list[Mapping[str, Any]] = []
        self.endpoints = ToolEndpoints(function_prefix="octopus-tool-", hosts=["api.test"], secrets_prefix="x")

    def check(self, target: LambdaTarget | HttpsTarget) -> None:
        self.endpoints.check(target)

    async def invoke(self, tenant_id: str, target: LambdaTarget | HttpsTarget, payload: Mapping[str, Any]) -> str:
        assert isinstance(target, LambdaTarget)
        self.received.append(payload)
        return await self.answers[target.function.removeprefix("octopus-tool-")](payload["arguments"])


class House:
    """A toolbox, its registry, and a turn to call tools in."""

    def __init__(self, database: Database, scope: Scope, occasion: Occasion) -> None:
        self.scope = scope
        self.occasion = occasion
        self.store = PostgresToolStore(database)
        self.targets = Targets()
        self.registry = ToolRegistry(
            self.store, self.targets, AgentRegistry(PostgresAgentStore(database)), {"close_session"}
        )

    def toolbox(self, *built_in: BuiltIn, timeout_s: float = 30) -> AgentToolBox:
        return AgentToolBox(
            built_in, self.store, self.targets, count_tokens, result_max_tokens=200, timeout_s=timeout_s
        )

    async def add(self, name: str, answer: Answer, **changes: Any) -> AgentTool:
        self.targets.answers[name] = answer
        target = LambdaTarget(kind="lambda", function=f"octopus-tool-{name}")
        given = {"name": name, "description": "A tool.", "input_schema": SCHEMA, "target": target} | changes
        return await self.registry.add(ROOT, self.scope.agent_id, **given)

    async def call(self, *calls: ToolCall, timeout_s: float = 30) -> list[ToolOutcome]:
        return await run_calls(self.toolbox(timeout_s=timeout_s), self.scope, self.occasion, calls)

    async def records(self) -> list[tuple[str, str]]:
        made = await self.registry.calls(ROOT, self.occasion.conversation_id)
        return sorted((record.name, record.outcome) for record in made)


@pytest.fixture
async def house(database: Database, scope: Scope) -> House:
    conversation, turn = uuid4(), NewTurn(uuid4(), "m1", None, lease_s=30)
    message = NewMessage(uuid4(), "user", [text_block("hello")], 1)
    log = PostgresConversationLog(database)
    assert await log.open_conversation(scope.tenant_id, scope.user_id, scope.agent_id, conversation, turn, message)
    return House(database, scope, Occasion(conversation, turn.turn_id))


def ask(name: str, call_id: str = "c1", **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments)


async def echo(arguments: Mapping[str, Any]) -> str:
    return f"found {arguments['q']}"


async def hang(_: Mapping[str, Any]) -> str:
    return await asyncio.Future()


async def fail(_: Mapping[str, Any]) -> str:
    raise ToolFailed("The tool failed: out of order")


async def five_megabytes(_: Mapping[str, Any]) -> str:
    return "all work and no play " * 250_000


async def test_calls_run_together_and_keep_their_order(house: House) -> None:
    together = asyncio.Barrier(2)

    async def waits_for_the_other(_: Mapping[str, Any]) -> str:
        await together.wait()
        await asyncio.sleep(0.05)
        return "slow"

    await house.add("slow", waits_for_the_other)
    await house.add("echo", echo)
    outcomes = await house.call(ask("slow", "a", q="1"), ask("echo", "b", q="2"), ask("slow", "c", q="3"))
    assert [(o.call_id, o.content, o.is_error) for o in outcomes] == [
        ("a", "slow", False),
        ("b", "found 2", False),
        ("c", "slow", False),
    ]
    assert outcomes[0].elapsed_ms > 50


async def test_one_bad_tool_does_not_spoil_the_others(house: House) -> None:
    await house.add("echo", echo)
    await house.add("hang", hang)
    await house.add("fail", fail)
    await house.add("flood", five_megabytes)
    began = time.perf_counter()
    outcomes = await house.call(
        ask("echo", q="x"),
        ask("hang", q="x"),
        ask("fail", q="x"),
        ask("flood", q="x"),
        ask("echo", tenant_id="other"),
        ask("nothing"),
        timeout_s=0.5,
    )
    assert time.perf_counter() - began < 15
    echoed, hung, failed, flooded, refused, unknown = outcomes
    assert (echoed.content, echoed.is_error) == ("found x", False)
    assert (hung.content, hung.is_error) == ("hang did not answer within 0.5 seconds.", True)
    assert (failed.content, failed.is_error) == ("The tool failed: out of order", True)
    assert not flooded.is_error
    assert flooded.content.startswith("all work and no play")
    assert "more characters omitted" in flooded.content
    assert count_tokens(flooded.content) < 250
    assert "'q' is a required property" in refused.content or "'tenant_id' was unexpected" in refused.content
    assert (unknown.content, unknown.is_error) == ("There is no tool nothing.", True)
    assert [received["tool"] for received in house.targets.received].count("echo") == 1
    assert await house.records() == [
        ("echo", "refused"),
        ("echo", "succeeded"),
        ("fail", "failed"),
        ("flood", "succeeded"),
        ("hang", "timed out"),
        ("nothing", "refused"),
    ]


async def test_who_is_asking_is_told_by_the_platform(house: House) -> None:
    await house.add("echo", echo)
    await house.call(ask("echo", q="x"))
    [received] = house.targets.received
    assert received == {
        "tool": "echo",
        "arguments": {"q": "x"},
        "context": {
            "tenant_id": "acme",
            "user_id": "ada",
            "agent_id": str(house.scope.agent_id),
            "conversation_id": str(house.occasion.conversation_id),
            "turn_id": str(house.occasion.turn_id),
            "call_id": "c1",
        },
    }


async def test_a_call_is_on_record_with_the_step_it_was_made_for(house: House) -> None:
    await house.add("echo", echo)
    steps = [Step(1, "Ask."), Step(2, "Look.", tool_name="echo"), Step(3, "Look again.", tool_name="echo")]
    followed = procedure("onboard", "onboard", steps=steps, version=4)
    house.occasion = Occasion(house.occasion.conversation_id, house.occasion.turn_id, followed)
    await house.call(ask("echo", q="x"), ask("other", "c2"))

    record, stray = await house.registry.calls(ROOT, house.occasion.conversation_id)

    assert (record.procedure_id, record.procedure_version, record.step) == (followed.procedure_id, 4, 2)
    assert (record.arguments, record.user_id, record.outcome) == ({"q": "x"}, "ada", "succeeded")
    assert record.duration_ms is not None
    assert (stray.procedure_id, stray.step) == (None, None)
    assert len(await house.registry.calls(Principal("acme", "ada"), house.occasion.conversation_id)) == 2
    assert await house.registry.calls(Principal("acme", "eve"), house.occasion.conversation_id) == []
    umbrella = Principal("umbrella", "ada", frozenset({Role.ADMIN}))
    assert await house.registry.calls(umbrella, house.occasion.conversation_id) == []


async def test_a_cancelled_call_is_on_record_as_that(house: House) -> None:
    called = asyncio.Event()

    async def hang(_: Mapping[str, Any]) -> str:
        called.set()
        return await asyncio.Future()

    await house.add("hang", hang)
    calling = asyncio.create_task(house.call(ask("hang", q="x")))
    await called.wait()
    assert await house.records() == [("hang", "running")]
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert await house.records() == [("hang", "cancelled")]


async def test_what_cannot_be_recorded_is_not_called(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.add("echo", echo)

    async def away(*_: Any) -> None:
        raise DatabaseUnavailable

    monkeypatch.setattr(house.store, "begin_call", away)
    [outcome] = await house.call(ask("echo", q="x"))
    assert outcome.is_error
    assert house.targets.received == []


async def test_tools_are_an_agents_own(house: House, database: Database) -> None:
    await house.add("echo", echo)
    await house.add("off", echo, is_active=False)
    specs = await house.toolbox(close_session(_never)).specs(house.scope)
    assert [spec.name for spec in specs] == ["close_session", "echo"]

    other = await PostgresAgentStore(database).create_agent("acme", "other", "", "You.", None, {})
    stranger = Scope("umbrella", "ada", house.scope.agent_id)
    for scope in (Scope("acme", "ada", other.agent_id), stranger):
        assert await house.toolbox().specs(scope) == []
    [outcome] = await run_calls(
        house.toolbox(), Scope("acme", "ada", other.agent_id), house.occasion, [ask("echo", q="x")]
    )
    assert outcome.content == "There is no tool echo."


async def _never(tenant_id: str, conversation_id: UUID, turn_id: UUID) -> bool:
    return False


async def test_tools_are_changed_by_administrators(house: House) -> None:
    tool = await house.add("echo", echo)
    agent_id = house.scope.agent_id
    assert await house.registry.get(ROOT, agent_id, "echo") == tool

    changed = await house.registry.update(ROOT, agent_id, "echo", {"description": "Better.", "is_active": False})
    assert (changed.description, changed.is_active, changed.version) == ("Better.", False, 2)
    assert await house.registry.list(ROOT, agent_id) == [changed]

    results = await asyncio.gather(
        *(house.registry.update(ROOT, agent_id, "echo", {"description": f"{n}"}) for n in range(2)),
        return_exceptions=True,
    )
    assert {type(result) for result in results} <= {AgentTool, Conflict}

    await house.registry.delete(ROOT, agent_id, "echo")
    with pytest.raises(NotFound):
        await house.registry.get(ROOT, agent_id, "echo")
    with pytest.raises(NotFound):
        await house.registry.delete(ROOT, agent_id, "echo")
    with pytest.raises(Forbidden):
        await house.registry.list(Principal("acme", "ada"), agent_id)


async def test_what_cannot_be_a_tool_is_refused(house: House) -> None:
    await house.add("echo", echo)
    with pytest.raises(Conflict, match="'echo'"):
        await house.add("echo", echo)
    with pytest.raises(Conflict, match="built-in"):
        await house.add("close_session", echo)
    with pytest.raises(InvalidInput, match="type object"):
        await house.add("bad", echo, input_schema={"type": "string"})
    with pytest.raises(InvalidInput, match="octopus-tool-"):
        await house.add("bad", echo, target=LambdaTarget(kind="lambda", function="billing"))
    with pytest.raises(InvalidInput, match="hosts"):
        await house.add("bad", echo, target=HttpsTarget(kind="https", url="https://evil.test/"))
    with pytest.raises(NotFound):
        await house.registry.add(
            ROOT,
            uuid4(),
            name="x",
            description="x",
            input_schema=SCHEMA,
            target=LambdaTarget(kind="lambda", function="octopus-tool-x"),
        )
    for n in range(MAX_TOOLS - 1):
        await house.add(f"t{n}", echo)
    with pytest.raises(Conflict, match="delete one"):
        await house.add("one_too_many", echo)


class Shelf:
    """Knowledge that knows one thing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Knowledge:
        self.asked.append((query.text, len(await query.vector())))
        if "leave" not in query.text:
            return Knowledge()
        return Knowledge([RecalledChunk(uuid4(), 0, "policy.md", None, 2, "25 days.", 3, Score(1))])


async def test_knowledge_is_searched_on_the_models_own_question(
    house: House, database: Database, embedder: WordEmbedder
) -> None:
    shelf = Shelf()
    toolbox = house.toolbox(search_knowledge(shelf, PostgresAgentStore(database), embedder))
    found, nothing, refused = await run_calls(
        toolbox,
        house.scope,
        house.occasion,
        [
            ask("search_knowledge", f"c{n}", **arguments)
            for n, arguments in enumerate([{"query": "annual leave"}, {"query": "rockets"}, {"query": ""}])
        ],
    )
    assert found.content == "Source: policy.md (page 2)\n25 days.\n---\n"
    assert nothing.content == NOTHING_FOUND
    assert refused.is_error
    assert sorted(shelf.asked) == [("annual leave", embedder.dimensions), ("rockets", embedder.dimensions)]


@pytest.mark.parametrize(("held", "is_error"), [(True, False), (False, True)])
async def test_a_session_is_closed_by_its_own_turn(house: House, held: bool, is_error: bool) -> None:
    asked = []

    async def request_end(tenant_id: str, conversation_id: UUID, turn_id: UUID) -> bool:
        asked.append((tenant_id, conversation_id, turn_id))
        return held

    toolbox = house.toolbox(close_session(request_end))
    [outcome] = await run_calls(toolbox, house.scope, house.occasion, [ask("close_session")])
    assert outcome.is_error is is_error
    assert asked == [("acme", house.occasion.conversation_id, house.occasion.turn_id)]


@pytest.mark.parametrize("text", ["", "short", "word " * 100, "x" * 5_000, "😀" * 3_000, "a  b " * 2_000])
def test_a_result_is_capped_in_tokens(text: str) -> None:
    kept = capped(text, 100, count_tokens)
    if count_tokens(text) <= 100:
        assert kept == text
    else:
        head, _, notice = kept.rpartition("\n")
        assert text.startswith(head)
        assert 50 <= count_tokens(head) <= 100
        assert f"{len(text) - len(head)} more characters" in notice
