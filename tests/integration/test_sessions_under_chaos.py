"""Two hundred sessions end while everything goes wrong at once: each becomes one episode, none is lost, none is twice.

Eight workers get every event at least twice and in any order. The model fails one time in five, one worker in twenty
dies without a word, PostgreSQL crashes in the middle, and its clock jumps by up to two days all the time.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from pydantic import BaseModel

from infra.local.postgres import SUPERUSER, Postgres, with_server
from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.migrations import migrate
from octopus.cloud.tokens import count_tokens
from octopus.conversations.session_store import PostgresSessionStore
from octopus.conversations.sessions import SessionEnded, Sessions
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.sweep import SessionSweep
from octopus.conversations.sweep_store import PostgresSessionFinder
from octopus.episodic.closing import EpisodeWriter
from octopus.episodic.store import PostgresEpisodeStore
from octopus.episodic.summarizer import Summarizer
from octopus.errors import ModelUnavailable, OctopusError, Unavailable
from octopus.identity import Principal
from octopus.recall import Scope
from tests.conftest import MIGRATIONS
from tests.support.embedder import WordEmbedder
from tests.support.sessions import ScriptedModel, hold_session

SESSIONS, WORKERS = 200, 8
MODEL_FAILS, WORKER_DIES, BUS_FAILS = 0.2, 0.05, 0.1
LAMBDA_ATTEMPTS = 3  # an asynchronous invocation and its two retries
JUMP = 2 * 24 * 3600

# The application's own now(): PostgreSQL's, moved by what the test says. Functions of the catalog come after it.
CLOCK = """
    create schema clock;
    create table clock.jump (seconds double precision not null);
    insert into clock.jump values (0);
    create function clock.now() returns timestamptz language sql stable
      return pg_catalog.now() + make_interval(secs => (select seconds from clock.jump));
    grant usage on schema clock to octopus_app, octopus_sweep;
    grant select on clock.jump to octopus_app, octopus_sweep;
    alter role octopus_app in database octopus set search_path = clock, public, pg_catalog;
    alter role octopus_sweep in database octopus set search_path = clock, public, pg_catalog;
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Postgres]:
    """A PostgreSQL of this test's own: it is crashed, and its clock is wrong."""
    with with_server(tmp_path / "data") as server:
        asyncio.run(migrate(server.dsn(), MIGRATIONS))
        with psycopg.connect(server.dsn(user=SUPERUSER), autocommit=True) as connection:
            connection.execute(CLOCK)
        yield server


class Chaos:
    """What can go wrong, by a seeded die."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._random = random.Random(4)
        self.seen: Counter[str] = Counter()

    def happens(self, what: str, share: float) -> bool:
        happened = self._random.random() < share
        self.seen[what] += happened
        return happened

    def pause(self) -> float:
        return self._random.uniform(0, 0.02)

    def shuffled(self, items: list[Any]) -> list[Any]:
        return self._random.sample(items, len(items))

    def set_clock(self, seconds: float) -> None:
        with psycopg.connect(self._server.dsn(user=SUPERUSER), autocommit=True) as connection:
            connection.execute("update clock.jump set seconds = %s", (seconds,))

    async def jump_for_ever(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            try:
                self.set_clock(self._random.uniform(-JUMP, JUMP))
                self.seen["clock jumps"] += 1
            except psycopg.OperationalError:
                pass  # it is being restarted

    async def crash_at(self, episodes: asyncio.Event) -> None:
        await episodes.wait()
        await asyncio.to_thread(self._server.stop, "immediate")
        await asyncio.sleep(0.3)
        await asyncio.to_thread(self._server.start)
        self.seen["database crashes"] += 1


class Bus:
    """Delivers every event twice, sometimes not at all, and in no order."""

    def __init__(self, chaos: Chaos) -> None:
        self._chaos = chaos
        self.queue: asyncio.Queue[tuple[SessionEnded, str, int]] = asyncio.Queue()

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        if self._chaos.happens("events the bus refused", BUS_FAILS):
            raise Unavailable()
        if self._chaos.happens("events lost on the way", 0.02):
            return
        for _ in range(2):
            self.queue.put_nowait((SessionEnded(**detail), str(uuid4()), 1))

    def shuffle(self) -> None:
        waiting = [self.queue.get_nowait() for _ in range(self.queue.qsize())]
        for delivery in self._chaos.shuffled(waiting):
            self.queue.put_nowait(delivery)
            self.queue.task_done()  # it was counted when it was first put


class Worker:
    """An execution environment of the end-session function, with connections of its own."""

    def __init__(self, server: Postgres, bus: Bus, chaos: Chaos, progress: asyncio.Event) -> None:
        self._bus = bus
        self._chaos = chaos
        self._progress = progress
        self._database = Database.at(server.dsn(user="octopus_app"), pool_size=2, connect_timeout_s=1)
        embedder = WordEmbedder()
        store = PostgresEpisodeStore(self._database, EmbeddingSpace(self._database, embedder))
        self.model = ScriptedModel(self._reply)
        self._writer = EpisodeWriter(store, Summarizer(self.model, count_tokens), embedder, count_tokens)

    async def run(self) -> None:
        while True:
            event, invocation, attempt = await self._bus.queue.get()
            if self._bus.queue.qsize() < SESSIONS:
                self._progress.set()
            try:
                await self._deliver(event, invocation)
            except OctopusError:
                if attempt < LAMBDA_ATTEMPTS:
                    self._bus.queue.put_nowait((event, invocation, attempt + 1))
                else:
                    self._chaos.seen["dead letters"] += 1
            finally:
                self._bus.queue.task_done()

    async def close(self) -> None:
        await self._database.close()

    async def _deliver(self, event: SessionEnded, invocation: str) -> None:
        under_way = asyncio.ensure_future(self._writer.remember(event, invocation))
        if self._chaos.happens("workers that died", WORKER_DIES):
            await asyncio.sleep(self._chaos.pause())
            under_way.cancel()
            await asyncio.wait([under_way])
            return
        await asyncio.sleep(self._chaos.pause())
        self._chaos.seen[await under_way] += 1

    def _reply(self, schema: type[BaseModel], text: str) -> Mapping[str, Any]:
        if self._chaos.happens("model failures", MODEL_FAILS):
            if self._chaos.happens("of these, bad replies", 0.5):
                return {"summary": ""}
            raise ModelUnavailable()
        return {"summary": "It went on.", "key_facts": [{"statement": "Something was said.", "messages": [1]}]}


async def test_every_session_becomes_one_episode(server: Postgres) -> None:
    began = time.perf_counter()
    chaos = Chaos(server)
    bus, half_way = Bus(chaos), asyncio.Event()
    database = Database.at(server.dsn(user="octopus_app"), pool_size=WORKERS, connect_timeout_s=2)
    sweep_database = Database.at(server.dsn(user="octopus_sweep"), pool_size=1, connect_timeout_s=2)
    log, sessions = PostgresConversationLog(database), Sessions(PostgresSessionStore(database), bus)
    sweep = SessionSweep(PostgresSessionFinder(sweep_database), sessions)
    agent = (await PostgresAgentStore(database).create_agent("acme", "aria", "", "You.", None, {})).agent_id
    scopes = [Scope("acme", f"user{n % 20}", agent) for n in range(SESSIONS)]
    talk = [("hello there", "hi"), ("what is new", "nothing much")]
    held = [(scope, await hold_session(log, scope, talk)) for scope in scopes]
    workers = [Worker(server, bus, chaos, half_way) for _ in range(WORKERS)]

    async def close(scope: Scope, conversation: UUID) -> None:
        await sessions.close(Principal(scope.tenant_id, scope.user_id), conversation)

    await asyncio.gather(*(close(*one) for one in held[: SESSIONS // 2]))  # the others are for the sweep to end
    bus.shuffle()
    tasks = [asyncio.create_task(worker.run()) for worker in workers]
    tasks += [asyncio.create_task(chaos.jump_for_ever()), asyncio.create_task(chaos.crash_at(half_way))]

    unsettled = -1
    for days in range(60):
        try:
            await sweep.run()
            bus.shuffle()
            await bus.queue.join()
            count = "select count(*) as n from conversations where episode_settled_at is null"
            unsettled = (await database.all("acme", count))[0]["n"]
        except OctopusError:
            chaos.seen["sweeps that failed"] += 1
        if unsettled == 0:
            break
        chaos.set_clock(days * 24 * 3600)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    episodes = await database.all("acme", "select conversation_id, summary_source from episodes")
    by_session = Counter(row["conversation_id"] for row in episodes)
    traces = await database.all("acme", "select episode_id from episode_facts where kind = 'summary'")
    for pool in (database, sweep_database):
        await pool.close()
    for worker in workers:
        await worker.close()
    calls = sum(len(worker.model.asked) for worker in workers)
    sources = Counter(row["summary_source"] for row in episodes)
    print(f"\n{len(episodes)} episodes of {len(held)} sessions in {time.perf_counter() - began:.1f} s, {days} sweeps")
    print(f"{calls} model calls; {dict(sources)}; {dict(chaos.seen)}")

    assert by_session == {conversation: 1 for _, conversation in held}
    assert len(traces) == SESSIONS
    assert unsettled == 0
    assert chaos.seen["database crashes"] == 1
    for what in ("model failures", "workers that died", "events the bus refused", "clock jumps", "not_claimed"):
        assert chaos.seen[what] > 0, what
