"""A user's memory, all of it to have, and all of it to have gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from pydantic import BaseModel

from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.tokens import count_tokens
from octopus.conversations.types import NewMessage, NewTurn, text_block
from octopus.episodic import privacy as privacy_module
from octopus.episodic.closing import EpisodeWriter
from octopus.episodic.privacy import Erasure, Privacy
from octopus.episodic.privacy_store import PostgresPrivacyStore
from octopus.episodic.summarizer import Summarizer
from octopus.errors import Conflict, Forbidden, InvalidInput
from octopus.identity import Principal, Role
from octopus.recall import Scope
from tests.conftest import DatabaseUrls
from tests.support.embedder import WordEmbedder
from tests.support.episodic import ADA, ADMIN, Memory
from tests.support.sessions import ScriptedModel, hold_session

SECRET = "xylophone"
TALK = [(f"My {SECRET} is broken.", f"A broken {SECRET}, I see."), (f"Fix the {SECRET}!", "Done.")]
CAPTURE = """
    insert into procedures (tenant_id, procedure_id, agent_id, name, description, trigger_kind, trigger_pattern, steps,
                            status, created_by, source_conversation_id)
    values (%(tenant)s, gen_random_uuid(), %(agent)s, %(name)s, %(text)s, 'phrases', %(text)s, '[]', %(status)s,
            'capture', %(conversation)s)"""


@pytest.fixture
def memory(database: Database, space: EmbeddingSpace, embedder: WordEmbedder, scope: Scope) -> Memory:
    memory = Memory(database, space, embedder, scope)
    memory.model = ScriptedModel(secretive)
    memory.writer = EpisodeWriter(memory.store, Summarizer(memory.model, count_tokens), embedder, count_tokens)
    return memory


@pytest.fixture
def privacy(database: Database) -> Privacy:
    return Privacy(PostgresPrivacyStore(database))


def secretive(schema: type[BaseModel], text: str) -> Mapping[str, Any]:
    fact = {"statement": f"The user has a {SECRET}.", "messages": [1]}
    return {"summary": f"About a {SECRET}.", "key_facts": [fact]}


def whole_database(urls: DatabaseUrls) -> dict[str, str]:
    """Every row of every table, as text, by table; not of the migrations, whose checksums may spell any short word."""
    with psycopg.connect(urls.owner, autocommit=True) as connection:
        tables = connection.execute(
            "select tablename from pg_tables where schemaname = 'public' and tablename <> 'schema_migrations'"
        ).fetchall()
        assert len(tables) > 15
        found = {}
        for (table,) in tables:
            name = sql.Identifier(table)
            connection.execute(sql.SQL("alter table {} no force row level security").format(name))
            rows = connection.execute(sql.SQL("select {}::text from {}").format(name, name)).fetchall()
            connection.execute(sql.SQL("alter table {} force row level security").format(name))
            found[table] = "\n".join(row[0] for row in rows)
    return found


def tables_with(text: str, urls: DatabaseUrls) -> set[str]:
    return {table for table, rows in whole_database(urls).items() if text in rows}


async def fill(memory: Memory, database: Database, scope: Scope) -> UUID:
    """A session of the user with everything that can hang on one: its id."""
    caller = Principal(scope.tenant_id, scope.user_id)
    episode = await memory.remembered(TALK, scope)
    conversation = (await memory.episodes.get(caller, episode)).conversation_id
    answer = (await memory.sessions.messages(caller, conversation)).items[1]
    await memory.sessions.rate(caller, conversation, answer.message_id, -1, f"more {SECRET}")
    tool_call = """
        insert into tool_calls (tenant_id, tool_call_id, conversation_id, turn_id, agent_id, user_id, call_id, name,
                                arguments)
        values (%(tenant)s, gen_random_uuid(), %(conversation)s, %(turn)s, %(agent)s, %(user)s, 'c', 'repair',
                jsonb_build_object('what', %(text)s::text))"""
    params = {
        "tenant": scope.tenant_id,
        "agent": scope.agent_id,
        "user": scope.user_id,
        "conversation": conversation,
        "turn": answer.turn_id,
        "text": SECRET,
    }
    await database.run(scope.tenant_id, tool_call, params)
    for status in ("pending", "rejected"):
        await database.run(scope.tenant_id, CAPTURE, {**params, "name": f"{status} {conversation}", "status": status})
    judged = """
        insert into procedure_captures (tenant_id, conversation_id, outcome, quote, quote_seq)
        values (%(tenant)s, %(conversation)s, 'not positive', %(text)s, 3)"""
    await database.run(scope.tenant_id, judged, params)
    running = "update conversations set summary = %(text)s, summary_tokens = 1 where conversation_id = %(conversation)s"
    await database.run(scope.tenant_id, running, params)
    return conversation


async def test_nothing_of_an_erased_user_is_left_in_any_table(
    memory: Memory, privacy: Privacy, database: Database, database_urls: DatabaseUrls
) -> None:
    conversation = await fill(memory, database, memory.scope)
    await memory.ended(TALK)  # its event is under way
    await hold_session(memory.log, memory.scope, TALK)  # still open
    before = tables_with(SECRET, database_urls)
    assert before == {
        "conversations", "messages", "feedback", "tool_calls", "episodes", "episode_facts", "procedures",
        "procedure_captures",
    }  # fmt: skip

    erasure = await privacy.erase(ADMIN, "ada", None)

    assert tables_with(SECRET, database_urls) == set()
    assert tables_with(str(conversation), database_urls) == set()
    assert tables_with("ada", database_urls) == {"erasures"}
    assert erasure.counts == {"conversations": 3, "messages": 12, "episodes": 1, "procedure_candidates": 2}
    assert (erasure.user_id, erasure.agent_id, erasure.erased_by) == ("ada", None, "root")
    audit = await database.all("acme", "select * from erasures")
    assert [Erasure(**{k: v for k, v in row.items() if k != "tenant_id"}) for row in audit] == [erasure]


async def test_erasure_takes_one_user_with_one_agent_and_nobody_else(
    memory: Memory, privacy: Privacy, database: Database, scope: Scope
) -> None:
    store = PostgresAgentStore(database)
    other_agent = (await store.create_agent("acme", "other", "", "You.", None, {})).agent_id
    stranger = (await store.create_agent("other", "aria", "", "You.", None, {})).agent_id
    kept = [
        Scope("acme", "ada", other_agent),
        Scope("acme", "adam", scope.agent_id),
        Scope("acme", "Ada", scope.agent_id),
        Scope("other", "ada", stranger),
    ]
    for one in (scope, *kept):
        await fill(memory, database, one)

    erasure = await privacy.erase(ADMIN, "ada", scope.agent_id)

    assert (erasure.counts["conversations"], erasure.counts["procedure_candidates"]) == (1, 2)
    for one in kept:
        assert len(await memory.recalled(f"a {SECRET}", one)) == 1
    assert await memory.recalled(f"a {SECRET}") == []
    with pytest.raises(Forbidden):
        await privacy.erase(Principal("acme", "ada"), "ada", None)


async def test_an_event_under_way_brings_nothing_back(
    memory: Memory, privacy: Privacy, database_urls: DatabaseUrls
) -> None:
    event = await memory.ended(TALK)
    called, erased = asyncio.Event(), asyncio.Event()

    class SlowModel:
        async def structured(self, *, schema: type[BaseModel], **_: Any) -> BaseModel:
            called.set()
            await erased.wait()
            return schema.model_validate(secretive(schema, ""))

    slow: Any = SlowModel()
    writer = EpisodeWriter(memory.store, Summarizer(slow, count_tokens), memory.embedder, count_tokens)
    under_way = asyncio.create_task(writer.remember(event, "w"))
    await called.wait()
    await privacy.erase(ADMIN, "ada", None)
    erased.set()

    assert await under_way == "overtaken"
    assert await memory.writer.remember(event, "redelivered") == "not_claimed"
    assert tables_with(SECRET, database_urls) == set()


async def test_an_episode_that_is_being_written_goes_too(
    memory: Memory, privacy: Privacy, database: Database, database_urls: DatabaseUrls
) -> None:
    """The erasure begins when the episode is written and not yet committed: it waits, and takes it along."""
    event = await memory.ended(TALK)
    query = "update conversations set episode_settled_at = now() where conversation_id = %(id)s"
    insert = """
        insert into episodes (tenant_id, episode_id, conversation_id, agent_id, user_id, summary, summary_source,
                              message_count, last_seq, started_at, ended_at, end_reason)
        select tenant_id, gen_random_uuid(), conversation_id, agent_id, user_id, %(text)s, 'model', 4, last_seq,
               started_at, ended_at, end_reason
        from conversations where conversation_id = %(id)s"""
    async with database.transaction("acme") as tx:
        await tx.run(query, {"id": event.conversation_id})
        erasure = asyncio.create_task(privacy.erase(ADMIN, "ada", None))
        await asyncio.sleep(0.3)
        assert not erasure.done()
        await tx.run(insert, {"id": event.conversation_id, "text": SECRET})
    assert (await erasure).counts["episodes"] == 1
    assert tables_with(SECRET, database_urls) == set()


async def test_a_turn_under_way_writes_nothing_after_the_erasure(
    memory: Memory, privacy: Privacy, database_urls: DatabaseUrls, scope: Scope
) -> None:
    conversation = await hold_session(memory.log, scope, TALK)
    turn = NewTurn(uuid4(), "m", conversation, lease_s=30)
    question = NewMessage(uuid4(), "user", [text_block("and?")], 5)
    assert await memory.log.claim_turn("acme", conversation, 4, turn, question)
    await privacy.erase(ADMIN, "ada", None)

    answer = [NewMessage(uuid4(), "assistant", [text_block(SECRET)], 5)]
    assert not await memory.log.finish_turn(
        "acme",
        conversation,
        turn.turn_id,
        turn.attempt_id,
        completed=True,
        stop_reason="end_turn",
        messages=answer,
        trace={},
    )
    assert tables_with(SECRET, database_urls) == set()


async def test_what_an_administrator_approved_stays_without_its_source(
    memory: Memory, privacy: Privacy, database: Database, scope: Scope
) -> None:
    conversation = await hold_session(memory.log, scope, TALK)
    approved = {"tenant": "acme", "agent": scope.agent_id, "conversation": conversation, "text": "How to repair."}
    await database.run("acme", CAPTURE, {**approved, "name": "repair", "status": "approved"})

    await privacy.erase(ADMIN, "ada", None)

    rows = await database.all("acme", "select name, source_conversation_id as source from procedures")
    assert rows == [{"name": "repair", "source": None}]


async def test_nothing_is_captured_from_an_erased_session(
    memory: Memory, privacy: Privacy, database: Database, scope: Scope
) -> None:
    conversation = await hold_session(memory.log, scope, TALK)
    await privacy.erase(ADMIN, "ada", None)
    late = {"tenant": "acme", "agent": scope.agent_id, "conversation": conversation, "text": SECRET, "name": "late"}
    with pytest.raises(Conflict):
        await database.run("acme", CAPTURE, {**late, "status": "pending"})


async def test_an_export_has_everything(memory: Memory, privacy: Privacy, database: Database, scope: Scope) -> None:
    first = await fill(memory, database, scope)
    second = await hold_session(memory.log, scope, TALK)
    await fill(memory, database, Scope("acme", "eve", scope.agent_id))

    lines = [json.loads(line) for line in (await privacy.export(ADA, "ada", None, None)).splitlines()]

    kinds = [line["type"] for line in lines]
    talk = ["conversation", *["message"] * 4, *["turn"] * 2]
    rest = [
        "tool_call",
        "feedback",
        "episode",
        "fact",
        "passage",
        "passage",
        *["procedure_candidate"] * 2,
        "procedure_capture",
    ]
    assert kinds == [*talk, *rest, *talk]
    assert [line["conversation_id"] for line in lines if line["type"] == "conversation"] == [str(first), str(second)]
    assert [line["content"][0]["text"] for line in lines if line["type"] == "message"] == [
        text for exchange in TALK * 2 for text in exchange
    ]
    assert lines[0]["running_summary"] == SECRET
    assert (await privacy.export(ADMIN, "ada", scope.agent_id, None)).count("\n") == len(lines)
    assert await privacy.export(ADMIN, "ada", uuid4(), None) == ""
    assert await privacy.export(Principal("other", "ada", frozenset({Role.ADMIN})), "ada", None, None) == ""
    with pytest.raises(Forbidden):
        await privacy.export(Principal("acme", "eve"), "ada", None, None)


async def test_a_large_export_comes_in_pages(
    memory: Memory, privacy: Privacy, database: Database, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(25):
        await hold_session(memory.log, scope, TALK)
    whole = (await privacy.export(ADA, "ada", None, None)).splitlines()
    monkeypatch.setattr(privacy_module, "PAGE_BYTES", 2_000)

    pages, cursor = [], None
    while True:
        *lines, last = (await privacy.export(ADA, "ada", None, cursor)).splitlines()
        pages.append(lines)
        if json.loads(last)["type"] != "next":
            lines.append(last)
            break
        cursor = json.loads(last)["cursor"]

    assert [line for page in pages for line in page] == whole
    assert len(pages) > 10
    for wrong in ("x", "x.1.2", f"{str(cursor).rpartition('.')[0]}.²", "..", f"{cursor}.1"):
        with pytest.raises(InvalidInput):
            await privacy.export(ADA, "ada", None, wrong)


async def test_nothing_derived_holds_personal_data_when_the_agent_redacts(
    memory: Memory, database: Database, database_urls: DatabaseUrls
) -> None:
    await database.run("acme", """update agents set memory_config = '{"pii_redaction": true}'""")

    def quoting(schema: type[BaseModel], text: str) -> Mapping[str, Any]:
        return {"summary": text[:300], "key_facts": [{"statement": text[-300:], "messages": [1]}]}

    memory.model = ScriptedModel(quoting)
    memory.writer = EpisodeWriter(memory.store, Summarizer(memory.model, count_tokens), memory.embedder, count_tokens)
    talk = [
        ("I'm Zarquon Rott, zarquon@mail.example, +44 7911 123456.", "Hello Zarquon!"),
        ("Card 4111 1111 1111 1111 please.", "Thank you, Mr Rott."),
    ]
    for length in (1, 2):  # word for word, and by the model
        await memory.remembered(talk[:length])

    for secret in ("Zarquon", "Rott", "mail.example", "7911", "4111"):
        assert tables_with(secret, database_urls) == {"messages"}
        assert not any(secret in text for text in (*memory.model.asked, *memory.embedder.texts))
    assert "[PERSON_NAME]" in whole_database(database_urls)["episode_facts"]
