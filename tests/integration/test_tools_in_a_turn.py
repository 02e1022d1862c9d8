"""Tools and procedures in a whole turn: recorded with the step, counted, and closing what is to be closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.tokens import count_tokens
from octopus.conversations.session_store import PostgresSessionStore
from octopus.conversations.sessions import Sessions
from octopus.procedural.capture_store import PostgresCaptureStore
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.store import PostgresProcedureStore
from octopus.procedural.types import Step
from octopus.tools.builtin import BuiltIn, close_session
from octopus.tools.store import PostgresToolStore
from octopus.tools.toolbox import AgentToolBox
from octopus.tools.types import HttpsTarget, LambdaTarget, ToolSpec
from tests.support.embedder import WordEmbedder
from tests.support.house import House, start_of
from tests.support.model import Say, ScriptedModel
from tests.support.procedures import procedure
from tests.support.sessions import RecordingBus

STEPS = [Step(1, "Ask."), Step(2, "Look the vendor up.", tool_name="vendor_lookup")]


class NoTargets:
    def check(self, target: LambdaTarget | HttpsTarget) -> None:
        raise NotImplementedError

    async def invoke(self, tenant_id: str, target: LambdaTarget | HttpsTarget, payload: Mapping[str, Any]) -> str:
        raise NotImplementedError


async def _lookup(scope: Any, occasion: Any, arguments: Mapping[str, Any]) -> str:
    return "V-17"


LOOKUP = BuiltIn(ToolSpec("vendor_lookup", "Finds a vendor.", {"type": "object"}), _lookup)


class Furnished(House):
    """The house with real procedures, tools and sessions."""

    def __init__(self, database: Database, space: EmbeddingSpace, embedder: WordEmbedder, agent: Agent) -> None:
        super().__init__(database, embedder, agent)
        self.store = PostgresProcedureStore(database, space)
        self.captures = PostgresCaptureStore(database, space)
        self.calls = PostgresToolStore(database)
        self.bus = RecordingBus()
        self.sessions = Sessions(PostgresSessionStore(database), self.bus)
        self.procedural = ProcedureRecall(self.store, embedder)  # type: ignore[assignment]
        built_in = [LOOKUP, close_session(self.sessions.request_end)]
        self.tools = AgentToolBox(  # type: ignore[assignment]
            built_in, self.calls, NoTargets(), count_tokens, result_max_tokens=100
        )

    async def end_session(self, tenant_id: str, conversation_id: Any) -> None:
        await super().end_session(tenant_id, conversation_id)
        await self.sessions.end_if_requested(tenant_id, conversation_id)


@pytest.fixture
def house(database: Database, space: EmbeddingSpace, embedder: WordEmbedder, agent: Agent) -> Furnished:
    return Furnished(database, space, embedder, agent)


async def test_a_procedure_is_followed_with_its_tool(house: Furnished) -> None:
    followed = procedure("onboard", "onboard.*vendor", steps=STEPS)
    await house.store.create_procedure("acme", followed, [], "created")
    house.model = ScriptedModel(Say("Let me look.", calls=[("c1", "vendor_lookup", {})]), Say("It is V-17."))

    events = await house.take("please onboard the vendor")

    assert [event.name for event in events if event.name.startswith("tool")] == ["tool_call", "tool_result"]
    conversation = start_of(events).conversation_id
    [record] = await house.calls.list_calls("acme", "ada", conversation)
    assert (record.name, record.outcome, record.turn_id) == ("vendor_lookup", "succeeded", start_of(events).turn_id)
    assert (record.procedure_id, record.procedure_version, record.step) == (followed.procedure_id, 1, 2)
    [statistics] = await house.captures.statistics("acme", followed.procedure_id)
    assert (statistics.matches, statistics.sessions, statistics.completions) == (1, 1, 1)
    assert house.closed == []


async def test_a_turn_without_a_procedure_counts_for_none(house: Furnished) -> None:
    await house.store.create_procedure("acme", procedure("onboard", "onboard.*vendor", steps=STEPS), [], "created")
    house.model = ScriptedModel(Say("", calls=[("c1", "vendor_lookup", {})]), Say("Done."))
    events = await house.take("something else")
    [record] = await house.calls.list_calls("acme", "ada", start_of(events).conversation_id)
    assert (record.procedure_id, record.step) == (None, None)
    assert await house.captures.statistics("acme", None) == []


async def test_the_agent_closes_the_session_once_its_answer_is_kept(house: Furnished) -> None:
    house.model = ScriptedModel(Say("", calls=[("c1", "close_session", {})]), Say("Goodbye."))
    events = await house.take("Bye!")
    conversation = start_of(events).conversation_id
    assert events[-1].name == "turn_end"
    session = await PostgresSessionStore(house.database).get_session("acme", "ada", conversation)
    assert session is not None
    assert (session.status, session.end_reason, session.last_seq) == ("ended", "AgentClosed", 4)
    assert [event["reason"] for event in house.bus.events] == ["AgentClosed"]

    later = await house.take("One more thing", conversation_id=conversation)
    assert start_of(later).conversation_id != conversation


async def test_a_bus_that_is_away_does_not_spoil_the_answer(house: Furnished) -> None:
    house.bus.broken = True
    house.model = ScriptedModel(Say("", calls=[("c1", "close_session", {})]), Say("Goodbye."))
    assert (await house.take("Bye!"))[-1].name == "turn_end"
