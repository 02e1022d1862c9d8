"""Messages go after their days and the episode after its own; what is left can still be recalled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.conversations.types import text_of
from octopus.episodic.retention import BATCH, Retention, Retired
from octopus.episodic.retention_store import PostgresRetentionFinder, PostgresRetentionStore
from octopus.errors import OctopusError
from octopus.recall import Scope
from tests.conftest import DatabaseUrls
from tests.support.embedder import WordEmbedder
from tests.support.episodic import ADA, TEAL, Memory
from tests.support.sessions import hold_session

NOTHING = Retired(0, 0, 0)


@pytest.fixture
def memory(database: Database, space: EmbeddingSpace, embedder: WordEmbedder, scope: Scope) -> Memory:
    return Memory(database, space, embedder, scope)


@pytest.fixture
async def retention(database: Database, database_urls: DatabaseUrls) -> AsyncIterator[Retention]:
    sweep = Database.at(database_urls.sweep, pool_size=1)
    yield Retention(PostgresRetentionFinder(sweep), PostgresRetentionStore(database))
    await sweep.close()


async def age(database: Database, days: float) -> None:
    query = "update conversations set ended_at = ended_at - make_interval(hours => %(hours)s)"
    await database.run("acme", query, {"hours": round(days * 24)})


async def configure(database: Database, settings: str) -> None:
    await database.run("acme", "update agents set memory_config = %(settings)s::jsonb", {"settings": settings})


async def contents(database: Database) -> str:
    tables = ("conversations", "messages", "turns", "feedback", "episodes", "episode_facts", "procedure_captures")
    rows = [await database.all("acme", f"select {table}::text as row from {table}") for table in tables]
    return "\n".join(row["row"] for found in rows for row in found)


async def test_the_messages_go_and_the_episode_stays(memory: Memory, retention: Retention, database: Database) -> None:
    episode = await memory.remembered(TEAL)
    answer = (await memory.sessions.messages(ADA, (await memory.episodes.get(ADA, episode)).conversation_id)).items[1]
    said = text_of(answer.content)
    await database.run("acme", "update conversations set summary = 'running: I will remember', summary_tokens = 5")
    quote = """
        insert into procedure_captures (tenant_id, conversation_id, outcome, quote)
        select tenant_id, conversation_id, 'not positive', 'running: quoted' from conversations"""
    await database.run("acme", quote)
    await age(database, 89)
    assert await retention.run() == NOTHING
    assert said in await contents(database)

    await age(database, 1.1)
    assert await retention.run() == Retired(1, 0, 0)

    assert await retention.run() == NOTHING
    left = await contents(database)
    assert said not in left
    assert "running" not in left
    kept = await memory.episodes.get(ADA, episode)
    assert kept.archived_at
    assert "The user's favourite colour is teal." in kept.key_facts
    found = await memory.recollection("what colour is my favourite")
    assert [(e.episode_id, e.archived, e.matched) for e in found.episodes] == [
        (episode, True, ["The user's favourite colour is teal."])
    ]
    by_summary = await memory.recollection("the user told a favourite colour and had a table booked")
    assert by_summary.episodes[0].score.relevance == pytest.approx(1.0, abs=0.01)
    session = await memory.sessions.get(ADA, kept.conversation_id)
    assert (session.status, session.archived_at is not None) == ("ended", True)
    assert (await memory.sessions.messages(ADA, kept.conversation_id)).items == []


async def test_after_its_own_days_the_episode_goes_too(
    memory: Memory, retention: Retention, database: Database
) -> None:
    await memory.remembered(TEAL)
    await age(database, 364)
    assert await retention.run() == Retired(1, 0, 0)
    await age(database, 1.1)
    assert await retention.run() == Retired(0, 1, 0)
    assert await contents(database) == ""


@pytest.mark.parametrize(
    ("settings", "after", "left"),
    [
        ('{"episodic_retention_days": 0, "episodic_archive_days": 0}', NOTHING, {"messages", "episode"}),
        ('{"episodic_retention_days": 0, "episodic_archive_days": 10}', Retired(0, 1, 0), {"messages"}),
        ('{"episodic_retention_days": 10, "episodic_archive_days": 0}', Retired(1, 0, 0), {"episode"}),
        ('{"episodic_retention_days": 10, "episodic_archive_days": 10}', Retired(1, 1, 0), set()),
    ],
)
async def test_zero_days_is_never(
    memory: Memory, retention: Retention, database: Database, settings: str, after: Retired, left: set[str]
) -> None:
    await memory.remembered(TEAL)
    await configure(database, settings)
    await age(database, 5000)

    assert await retention.run() == after
    assert await retention.run() == NOTHING

    text = await contents(database)
    signs = {"messages": 'I will remember that you like teal."', "episode": "had a table booked"}
    assert {name for name, sign in signs.items() if sign.replace('"', "") in text} == left
    assert bool(text) == bool(left)


async def test_sessions_that_are_active_or_wait_for_their_episode_are_left_alone(
    memory: Memory, retention: Retention, database: Database
) -> None:
    await memory.ended(TEAL)
    await hold_session(memory.log, memory.scope, TEAL)
    await database.run("acme", "update conversations set started_at = now() - interval '999 days'")
    await age(database, 999)
    assert await retention.run() == NOTHING


async def test_a_pass_is_bounded(memory: Memory, retention: Retention, database: Database) -> None:
    await memory.remembered(TEAL)
    copies = """
        insert into conversations (tenant_id, conversation_id, agent_id, user_id, status, ended_at, end_reason,
                                   announced_at, episode_settled_at)
        select tenant_id, gen_random_uuid(), agent_id, user_id, 'ended', ended_at, end_reason, ended_at, ended_at
        from conversations, generate_series(1, %(n)s)"""
    await database.run("acme", copies, {"n": BATCH + 9})
    await age(database, 100)

    assert await retention.run() == Retired(BATCH, 0, 0)
    assert await retention.run() == Retired(10, 0, 0)


async def test_the_sweeps_role_cannot_read_what_was_said(memory: Memory, database_urls: DatabaseUrls) -> None:
    await memory.remembered(TEAL)
    sweep: Any = Database.at(database_urls.sweep, pool_size=1)
    for query in (
        "select content from messages",
        "select summary from episodes",
        "select summary from conversations",
        "select content from episode_facts",
        "select user_id from conversations",
    ):
        with pytest.raises(OctopusError, match="InsufficientPrivilege"):
            await sweep.all("acme", query)
    await sweep.close()
