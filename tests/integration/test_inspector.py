"""The Context Inspector: exact about a past turn, honest about what has changed since; and nothing of it at rest."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.observer import PowertoolsObserver
from octopus.cloud.telemetry import metrics
from octopus.episodic.types import Recollection
from octopus.errors import Forbidden, NotFound
from octopus.identity import Principal, Role
from octopus.procedural.types import Guidance, Step
from octopus.recall import Score
from octopus.semantic.types import Knowledge
from octopus.turn_events import ContextReport, TurnStart
from octopus.working.inspector import Inspector
from octopus.working.store import PostgresInspectorStore
from tests.conftest import DatabaseUrls
from tests.support.embedder import WordEmbedder
from tests.support.house import ADA, House
from tests.support.memories import a_chunk, a_procedure, an_episode
from tests.support.model import Say, ScriptedModel

DEBUG = Principal("acme", "operator", frozenset({Role.DEBUG}))
ADA_DEBUG = Principal("acme", "ada", frozenset({Role.DEBUG}))


@pytest.fixture
def house(database: Database, embedder: WordEmbedder, agent: Agent) -> House:
    house = House(database, embedder, agent)
    house.procedural.found = Guidance(a_procedure("zebra_steps", "quagga description", Step(1, "okapi instruction")))
    house.semantic.found = Knowledge([a_chunk(1, "pangolin passage")], [a_chunk(2, "aardvark near miss")])
    house.episodic.found = Recollection([an_episode(1, "narwhal summary", "axolotl fact")])
    return house


@pytest.fixture
def inspector(database: Database) -> Inspector:
    return Inspector(PostgresInspectorStore(database))


async def turn_of(house: House, message: str, conversation_id: UUID | None = None) -> TurnStart:
    start = (await house.take(message, conversation_id=conversation_id))[0]
    assert isinstance(start, TurnStart)
    return start


async def test_a_report_tells_what_each_section_held_and_why(house: House, inspector: Inspector) -> None:
    first = await turn_of(house, "first question")
    turn = await turn_of(house, "second question", first.conversation_id)

    report = await inspector.inspect(DEBUG, turn.conversation_id, turn.turn_id)

    sections = {section.name: section for section in report.sections}
    assert list(sections) == ["tools", "system_prompt", "procedure", "knowledge", "episodes", "history", "message"]
    assert sum(section.tokens for section in report.sections) == report.budget.used
    assert [
        (i.included, i.left_out, i.rank, i.cosine, i.relevance, i.threshold) for i in sections["knowledge"].items
    ] == [
        (True, None, 1, 0.5, 0.8, 0.7),
        (False, "below_min_score", 2, 0.5, 0.8, 0.7),
    ]
    assert [(item.rule, item.included) for item in sections["procedure"].items] == [("pattern", True)]
    assert sections["system_prompt"].text == "You are Aria."
    assert sections["history"].text == "user: first question\nassistant: All right."
    assert sections["message"].text == "second question"
    assert (report.pruning.turns_kept, report.pruning.turns_dropped) == (1, 0)
    assert (report.model, report.stop_reason, report.status) == ("test-model", "end_turn", "completed")
    assert [store.name for store in report.stores] == ["procedural", "semantic", "episodic"]
    assert report.usage.output_tokens == 10


async def test_an_item_shows_its_rank_in_each_search_which_older_traces_do_not_have(
    house: House, inspector: Inspector, database: Database
) -> None:
    chunk = replace(a_chunk(1, "pangolin passage"), score=Score(1, 0.5, 0.8, 0.2, cosine_rank=7, share_rank=2))
    house.semantic.found = Knowledge([chunk])
    turn = await turn_of(house, "first question")

    async def ranks() -> tuple[float | None, int | None, int | None]:
        report = await inspector.inspect(DEBUG, turn.conversation_id, turn.turn_id)
        (item,) = next(section.items for section in report.sections if section.name == "knowledge")
        return item.share, item.cosine_rank, item.share_rank

    assert await ranks() == (0.2, 7, 2)
    older = "regexp_replace(trace::text, ', \"(cosine|share)_rank\": \\w+', '', 'g')::jsonb"
    await database.run("acme", f"update turns set trace = {older}")
    assert await ranks() == (0.2, None, None)


async def test_what_is_gone_is_marked_and_not_shown(house: House, inspector: Inspector, database: Database) -> None:
    first = await turn_of(house, "first question")
    turn = await turn_of(house, "second question", first.conversation_id)
    await database.run("acme", "update agents set system_prompt = 'New.', version = version + 1")
    await database.run("acme", "delete from messages where seq <= 3")

    report = await inspector.inspect(DEBUG, turn.conversation_id, turn.turn_id)

    states = {section.name: (section.state, section.text) for section in report.sections}
    assert states["system_prompt"] == ("changed", "New.")
    assert states["history"] == ("erased", None)
    assert states["message"] == ("erased", None)
    # The chunk and the episode of this test were never stored.
    items = [item for section in report.sections for item in section.items]
    assert {(item.state, item.text) for item in items} == {("erased", None)}


async def test_only_the_role_of_its_tenant_may_look(house: House, inspector: Inspector) -> None:
    turn = await turn_of(house, "hi")
    with pytest.raises(Forbidden, match="OctopusDebug"):
        await inspector.inspect(ADA, turn.conversation_id, turn.turn_id)
    foreign = Principal("other", "operator", frozenset({Role.DEBUG}))
    for caller, conversation_id in [(foreign, turn.conversation_id), (DEBUG, uuid4())]:
        with pytest.raises(NotFound):
            await inspector.inspect(caller, conversation_id, turn.turn_id)


async def test_the_report_comes_inline_when_asked_for(house: House) -> None:
    events = [e async for e in await house.runner().begin(ADA_DEBUG, house.request("hi", inspect=True))]
    (report,) = [event for event in events if isinstance(event, ContextReport)]
    items = [item for section in report.data()["sections"] for item in section["items"]]
    assert [item["state"] for item in items] == ["current"] * 4
    assert "pangolin passage" in json.dumps(report.data())
    with pytest.raises(Forbidden):
        await house.begin("hi", inspect=True)


async def test_no_text_of_the_assembled_sections_comes_to_rest(
    house: House, database_urls: DatabaseUrls, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the user's message and the answer are stored; logs and metrics hold neither."""
    house.observer = PowertoolsObserver()  # type: ignore[assignment]
    house.model = ScriptedModel(Say("capybara answer"))
    caplog.set_level(logging.DEBUG)

    await house.take("ocelot question")

    recalled = ["zebra", "quagga", "okapi", "pangolin", "aardvark", "narwhal", "axolotl"]
    tables = _everything(database_urls)
    assert not [word for word in recalled for row in tables if word in row]
    for word in ("ocelot", "capybara"):
        assert [row.split("|")[0] for row in tables if word in row] == ["messages"]
    emitted = caplog.text + capsys.readouterr().out + json.dumps(metrics.serialize_metric_set())
    assert "first_token_ms" in emitted or "TimeToFirstToken" in emitted
    assert not [word for word in [*recalled, "ocelot", "capybara"] if word in emitted]
    metrics.clear_metrics()


def _everything(database_urls: DatabaseUrls) -> list[str]:
    """Every row of every table as text, with the name of its table before it."""
    rows: list[str] = []
    with psycopg.connect(database_urls.app) as connection:
        connection.execute("select set_config('octopus.tenant_id', 'acme', true)")
        tables: list[Any] = connection.execute(
            "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' "
            "and has_table_privilege(oid, 'select')"
        ).fetchall()
        for (table,) in tables:
            query = sql.SQL("select {}::text from {}").format(sql.Identifier(table), sql.Identifier(table))
            rows += [f"{table}|{row[0]}" for row in connection.execute(query)]
    assert len(rows) >= 5
    return rows
