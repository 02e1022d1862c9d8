"""No id, however alike another it looks, ever reaches another's row: by the predicates alone, and with the policies."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql

from infra.local.postgres import SUPERUSER, Postgres
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.conversations.session_store import PostgresSessionStore
from octopus.conversations.sessions import Sessions
from octopus.episodic.library import Episodes
from octopus.episodic.privacy import Privacy
from octopus.episodic.privacy_store import PostgresPrivacyStore
from octopus.episodic.recall import EpisodicRecall
from octopus.episodic.store import PostgresEpisodeStore
from octopus.errors import NotFound
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig
from octopus.recall import Query, Scope
from tests.support.embedder import WordEmbedder
from tests.support.sessions import RecordingBus

# Each is easily taken for another: prefixes, wildcards, case, blanks, quotes, Unicode look-alikes and equivalents.
ALIKE = [
    "1", "10", "01", "1.0", "１", "¹", "1 ", " 1", "%", "_", "1%", "1_", "_1", "%1%", "*", "1*", ".*",
    "ada", "Ada", "ADA", "ad", "ada%", "ad_", "аda", "adа", "ａda", "ada\u200b", "ada\u0301", "adá", "ada ", "ada\n",
    "ß", "ss", "SS", "ﬁ", "fi", "i", "ı", "İ", "K", "\u212a", "Å", "\u212b", "A\u030a",
    "ada' or '1'='1", "ada;--", 'ada"', "ada\\", "ada/", "ada:1", "null", "NULL", "None", "",
    "6f9619ff-8b86-d011-b42d-00c04fc964ff", "6F9619FF-8B86-D011-B42D-00C04FC964FF",
    "{6f9619ff-8b86-d011-b42d-00c04fc964ff}", "6f9619ff8b86d011b42d00c04fc964ff", "urn:uuid:6f9619ff",
]  # fmt: skip
# The same agents in every tenant, one hexadecimal digit apart.
AGENTS = [UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff"), UUID("6f9619ff-8b86-d011-b42d-00c04fc964fe")]
TENANTS = [tenant for tenant in ALIKE if tenant][::3]
EXAMPLES = 40

ids = st.sampled_from(ALIKE) | st.text(
    st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=0, max_size=6
)
scopes = st.builds(Scope, st.sampled_from(TENANTS) | ids, ids, st.sampled_from(AGENTS) | st.uuids())


@dataclass(frozen=True)
class Row:
    """One user's memory with one agent: a session, one message, an episode. Its text says whose it is."""

    scope: Scope
    conversation_id: UUID
    message_id: UUID
    episode_id: UUID

    @property
    def text(self) -> str:
        return repr(self.scope)


@dataclass(frozen=True)
class World:
    """A database full of look-alikes, seen through one role."""

    rows: list[Row]
    url: str

    def texts(self, *, tenant: str, user: str | None = None, agent: UUID | None = None) -> set[str]:
        """What a caller of exactly these ids may see."""
        return {
            row.text
            for row in self.rows
            if row.scope.tenant_id == tenant
            and user in (None, row.scope.user_id)
            and agent in (None, row.scope.agent_id)
        }


@pytest.fixture(scope="module")
def populated(postgres: Postgres, migrated_template: str) -> Iterator[tuple[str, list[Row]]]:
    """A database with a random half of all look-alikes; its name and rows."""
    dice = random.Random(1)
    everybody = [Scope(t, u, a) for t in TENANTS for u in ALIKE for a in AGENTS]
    rows = [Row(scope, uuid4(), uuid4(), uuid4()) for scope in dice.sample(everybody, len(everybody) // 2)]
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres.dsn("postgres", SUPERUSER), autocommit=True) as connection:
        create = sql.SQL("create database {} template {} owner octopus_owner")
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(migrated_template)))
        with psycopg.connect(postgres.dsn(name, SUPERUSER)) as inside:
            _fill(inside, rows)
        yield name, rows
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _fill(connection: psycopg.Connection[Any], rows: list[Row]) -> None:
    embedder = WordEmbedder()
    insert = """
        insert into agents (tenant_id, agent_id, name, system_prompt) values (%(t)s, %(a)s, %(a)s::text, 'You.');
        """
    connection.cursor().executemany(insert, [{"t": t, "a": a} for t in TENANTS for a in AGENTS])
    space = connection.execute(
        "insert into embedding_spaces (model, dimensions, state) values (%s, %s, 'current') returning space_id",
        (embedder.model, embedder.dimensions),
    ).fetchone()
    assert space
    same = str([1.0] + [0.0] * (embedder.dimensions - 1))  # every row fits every query
    statements = (
        """insert into conversations (tenant_id, conversation_id, agent_id, user_id, status, last_seq, ended_at,
                                      end_reason, episode_settled_at)
           values (%(t)s, %(c)s, %(a)s, %(u)s, 'ended', 1, now(), 'Timeout', now())""",
        """insert into turns (tenant_id, turn_id, conversation_id, agent_id, user_id, client_message_id, user_seq)
           values (%(t)s, %(c)s, %(c)s, %(a)s, %(u)s, %(c)s::text, 1)""",
        """insert into messages (tenant_id, conversation_id, seq, message_id, turn_id, role, content, token_count,
                                 cumulative_tokens)
           values (%(t)s, %(c)s, 1, %(m)s, %(c)s, 'user',
                   jsonb_build_array(jsonb_build_object('type', 'text', 'text', %(text)s::text)), 1, 1)""",
        """insert into episodes (tenant_id, episode_id, conversation_id, agent_id, user_id, summary, summary_source,
                                 message_count, last_seq, started_at, ended_at, end_reason)
           values (%(t)s, %(e)s, %(c)s, %(a)s, %(u)s, %(text)s, 'verbatim', 1, 1, now(), now(), 'Timeout')""",
        """insert into episode_facts (tenant_id, episode_id, ordinal, agent_id, user_id, kind, content, token_count,
                                      space_id, embedding, context)
           values (%(t)s, %(e)s, 0, %(a)s, %(u)s, 'fact', %(text)s, 1, %(space)s, %(vector)s::vector,
                   %(vector)s::halfvec)""",
    )
    params = [
        {
            "t": row.scope.tenant_id, "a": row.scope.agent_id, "u": row.scope.user_id, "c": row.conversation_id,
            "m": row.message_id, "e": row.episode_id, "text": row.text, "space": space[0], "vector": same,
        }
        for row in rows
    ]  # fmt: skip
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.executemany(statement, params)


@pytest.fixture(scope="module", params=["with row-level security", "without row-level security"])
def world(request: pytest.FixtureRequest, postgres: Postgres, populated: tuple[str, list[Row]]) -> World:
    """Under the application's role, and under the superuser, whom no policy binds: then the predicates stand alone."""
    name, rows = populated
    return World(rows, postgres.dsn(name, "octopus_app" if request.param.startswith("with ") else SUPERUSER))


class Caller:
    """Everything that somebody can ask of episodic memory."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.checks = 0
        self.database = Database.at(world.url, pool_size=2)
        embedder = WordEmbedder()
        store = PostgresEpisodeStore(self.database, EmbeddingSpace(self.database, embedder))
        self.recall = EpisodicRecall(store, embedder)
        self.episodes = Episodes(store, self.recall, embedder)
        self.sessions = Sessions(PostgresSessionStore(self.database), RecordingBus())
        self.privacy = Privacy(PostgresPrivacyStore(self.database))

    def same(self, seen: list[str], allowed: set[str]) -> None:
        assert sorted(seen) == sorted(allowed)
        self.checks += 1

    async def look_around(self, scope: Scope, row: Row) -> None:
        """See exactly one's own, and nothing of `row` unless it is."""
        caller = Principal(scope.tenant_id, scope.user_id)
        admin = Principal(scope.tenant_id, "root", frozenset({Role.ADMIN}))
        own = self.world.texts(tenant=scope.tenant_id, user=scope.user_id)
        here = self.world.texts(tenant=scope.tenant_id, user=scope.user_id, agent=scope.agent_id)
        for mode in ("semantic", "recency", "both"):
            config = MemoryConfig(episodic_recall_mode=mode, episodic_top_k=50, episodic_min_score=0.0)
            found = await self.recall.recall(scope, Query(scope.user_id, one_vector()), config)
            self.same([e.summary for e in (*found.episodes, *found.near_misses)], here)
        self.same([e.summary for e in (await self.episodes.list(caller, limit=200)).items], own)
        found_here = await self.episodes.list(caller, agent_id=scope.agent_id, limit=200)
        self.same([e.summary for e in found_here.items], here)
        everybodys = await self.episodes.list(admin, user_id=scope.user_id, limit=200)
        self.same([e.summary for e in everybodys.items], own)
        sessions = (await self.sessions.list(caller, limit=200)).items
        self.same([repr(Scope(scope.tenant_id, s.user_id, s.agent_id)) for s in sessions], own)
        exported = await self.privacy.export(caller, scope.user_id, None, None)
        self.same(
            [text for text in (r.text for r in self.world.rows) if json.dumps(text, ensure_ascii=False) in exported],
            own,
        )

        is_own = (row.scope.tenant_id, row.scope.user_id) == (scope.tenant_id, scope.user_id)
        asks: list[Callable[[], Awaitable[Any]]] = [
            lambda: self.episodes.get(caller, row.episode_id),
            lambda: self.sessions.get(caller, row.conversation_id),
            lambda: self.sessions.messages(caller, row.conversation_id),
            lambda: self.sessions.close(caller, row.conversation_id),
            lambda: self.sessions.rate(caller, row.conversation_id, row.message_id, 1, None),
        ]
        if not is_own:
            asks.append(lambda: self.episodes.delete(caller, row.episode_id))
        for ask in asks:
            self.same(["found"] if await exists(ask()) else [], {"found"} if is_own else set())
        in_tenant = row.scope.tenant_id == scope.tenant_id
        assert await exists(self.episodes.get(admin, row.episode_id)) == in_tenant


async def exists(asked: Awaitable[Any]) -> bool:
    try:
        await asked
    except NotFound:
        return False
    return True


async def one_vector() -> list[float]:
    return [1.0] + [0.0] * (WordEmbedder.dimensions - 1)


def test_nobody_sees_anothers_memory(world: World) -> None:
    with asyncio.Runner() as runner:
        caller = Caller(world)

        @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
        @given(scopes, st.sampled_from(world.rows))
        def fuzz(scope: Scope, row: Row) -> None:
            runner.run(caller.look_around(scope, row))
            runner.run(caller.look_around(row.scope, row))

        fuzz()
        runner.run(caller.database.close())
    print(f"\n{caller.checks} answers compared among {len(world.rows)} look-alikes")
    assert caller.checks > 20 * EXAMPLES
