"""The life of a session: ended once, by whom it may be, and announced until it is an episode."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from octopus.cloud.database import Database
from octopus.conversations.session_store import PostgresSessionStore
from octopus.conversations.sessions import SessionEnded, Sessions
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.sweep import PATIENCE_MINUTES, SessionSweep, Swept
from octopus.conversations.sweep_store import PostgresSessionFinder
from octopus.conversations.types import NewMessage, NewTurn, text_block
from octopus.errors import Forbidden, InvalidInput, NotFound, TurnInProgress
from octopus.identity import Principal, Role
from octopus.recall import Scope
from tests.conftest import DatabaseUrls
from tests.support.sessions import RecordingBus, hold_session

ADA = Principal("acme", "ada")
EVE = Principal("acme", "eve")
ADMIN = Principal("acme", "root", frozenset({Role.ADMIN}))
STRANGER = Principal("other", "ada", frozenset({Role.ADMIN}))
TALK = [("hello", "hi"), ("how are you", "fine")]


@pytest.fixture
def log(database: Database) -> PostgresConversationLog:
    return PostgresConversationLog(database)


@pytest.fixture
def bus() -> RecordingBus:
    return RecordingBus()


@pytest.fixture
def sessions(database: Database, bus: RecordingBus) -> Sessions:
    return Sessions(PostgresSessionStore(database), bus)


@pytest.fixture
async def sweep(database_urls: DatabaseUrls, sessions: Sessions) -> Any:
    database = Database.at(database_urls.sweep, pool_size=1)
    yield SessionSweep(PostgresSessionFinder(database), sessions)
    await database.close()


@pytest.fixture
def owner(database_urls: DatabaseUrls) -> Any:
    """Change rows as no application can: to let time pass."""
    with psycopg.connect(database_urls.owner, autocommit=True) as connection:
        connection.execute("set session authorization octopus_owner")
        connection.execute("alter table conversations no force row level security")
        yield connection


def let_pass(owner: Any, minutes: float) -> None:
    for column in ("started_at", "last_message_at", "ended_at", "announced_at", "turn_lease_until", "end_requested_at"):
        owner.execute(f"update conversations set {column} = {column} - make_interval(secs => %s)", (minutes * 60,))


async def take_turn(log: PostgresConversationLog, scope: Scope, conversation: UUID, last_seq: int) -> NewTurn:
    turn = NewTurn(uuid4(), str(uuid4()), conversation, lease_s=30)
    message = NewMessage(uuid4(), "user", [text_block("and now?")], 5)
    assert await log.claim_turn(scope.tenant_id, conversation, last_seq, turn, message)
    return turn


async def test_closing_ends_the_session_once_and_announces_it_once(
    sessions: Sessions, log: PostgresConversationLog, scope: Scope, bus: RecordingBus
) -> None:
    conversation = await hold_session(log, scope, TALK)

    closed = await asyncio.gather(*(sessions.close(ADA, conversation) for _ in range(5)))

    assert {(session.status, session.end_reason, session.ended_at) for session in closed} == {
        ("ended", "UserClosed", closed[0].ended_at)
    }
    assert [SessionEnded(**event) for event in bus.events] == [
        SessionEnded(
            tenant_id="acme",
            conversation_id=conversation,
            agent_id=scope.agent_id,
            reason="UserClosed",
            last_seq=4,
        )
    ]
    assert "hello" not in str(bus.events)


async def test_nothing_is_said_in_an_ended_session(
    sessions: Sessions, log: PostgresConversationLog, scope: Scope
) -> None:
    conversation = await hold_session(log, scope, TALK)
    await sessions.close(ADA, conversation)
    turn = NewTurn(uuid4(), "late", conversation, lease_s=30)

    assert not await log.claim_turn("acme", conversation, 4, turn, NewMessage(uuid4(), "user", [text_block("x")], 1))


async def test_a_session_is_not_closed_during_a_turn(
    sessions: Sessions, log: PostgresConversationLog, scope: Scope, bus: RecordingBus
) -> None:
    conversation = await hold_session(log, scope, TALK)
    await take_turn(log, scope, conversation, 4)

    with pytest.raises(TurnInProgress) as refused:
        await sessions.close(ADA, conversation)

    assert refused.value.retry_after
    assert (await sessions.get(ADA, conversation)).status == "active"
    assert bus.events == []


async def test_a_turn_that_overran_its_lease_cannot_write_into_the_ended_session(
    sessions: Sessions, log: PostgresConversationLog, scope: Scope, owner: Any
) -> None:
    conversation = await hold_session(log, scope, TALK)
    turn = await take_turn(log, scope, conversation, 4)
    let_pass(owner, 1)
    ended = await sessions.close(ADA, conversation)

    answer = [NewMessage(uuid4(), "assistant", [text_block("too late")], 5)]
    assert not await log.finish_turn(
        "acme",
        conversation,
        turn.turn_id,
        turn.attempt_id,
        completed=True,
        stop_reason="end_turn",
        messages=answer,
        trace={},
    )
    assert (await sessions.get(ADA, conversation)).last_seq == ended.last_seq == 5


async def test_the_agent_ends_the_session_with_its_turn(
    sessions: Sessions, log: PostgresConversationLog, scope: Scope, bus: RecordingBus
) -> None:
    conversation = await hold_session(log, scope, TALK)
    assert await sessions.end_if_requested("acme", conversation) is None
    turn = await take_turn(log, scope, conversation, 4)

    assert not await sessions.request_end("acme", conversation, uuid4())
    assert await sessions.request_end("acme", conversation, turn.turn_id)
    assert await sessions.end_if_requested("acme", conversation) is None  # the turn still holds it
    answer = [NewMessage(uuid4(), "assistant", [text_block("goodbye")], 5)]
    await log.finish_turn(
        "acme",
        conversation,
        turn.turn_id,
        turn.attempt_id,
        completed=True,
        stop_reason="end_turn",
        messages=answer,
        trace={},
    )
    ended = await sessions.end_if_requested("acme", conversation)

    assert ended is not None
    assert (ended.end_reason, ended.last_seq) == ("AgentClosed", 6)
    assert [event["reason"] for event in bus.events] == ["AgentClosed"]


async def test_the_sweep_ends_idle_and_over_age_sessions_by_their_agents_settings(
    sessions: Sessions, sweep: SessionSweep, log: PostgresConversationLog, scope: Scope, owner: Any, bus: RecordingBus
) -> None:
    idle = await hold_session(log, scope, TALK)
    let_pass(owner, 29)
    assert await sweep.run() == Swept(0, 0, 0)
    let_pass(owner, 2)
    fresh = await hold_session(log, scope, TALK)
    assert await sweep.run() == Swept(1, 0, 0)
    assert (await sessions.get(ADA, idle)).end_reason == "Timeout"
    assert (await sessions.get(ADA, fresh)).status == "active"

    owner.execute("update conversations set started_at = now() - interval '481 minutes' where status = 'active'")
    assert await sweep.run() == Swept(1, 0, 0)
    assert [event["reason"] for event in bus.events] == ["Timeout", "Timeout"]

    patient = await hold_session(log, scope, TALK)
    owner.execute("alter table agents no force row level security")
    owner.execute("""update agents set memory_config = '{"session_idle_minutes": 90, "session_max_hours": 24}'""")
    let_pass(owner, 9 * 60)
    owner.execute("update conversations set last_message_at = now() - interval '80 minutes' where status = 'active'")
    await sweep.run()
    assert (await sessions.get(ADA, patient)).status == "active"
    let_pass(owner, 11)
    await sweep.run()
    assert (await sessions.get(ADA, patient)).status == "ended"


async def test_the_sweep_leaves_alone_what_is_in_use(
    sessions: Sessions, sweep: SessionSweep, log: PostgresConversationLog, scope: Scope, owner: Any
) -> None:
    held, spoken = [await hold_session(log, scope, TALK) for _ in range(2)]
    let_pass(owner, 31)
    await take_turn(log, scope, held, 4)
    owner.execute("update conversations set last_message_at = last_message_at - interval '31 minutes'")

    assert await sessions.end_abandoned("acme", spoken, 3) is None  # something was said since the sweep looked
    assert await sweep.run() == Swept(1, 0, 0)

    assert (await sessions.get(ADA, held)).status == "active"


async def test_a_session_abandoned_after_a_failed_turn_ended_by_error(
    sessions: Sessions, sweep: SessionSweep, log: PostgresConversationLog, scope: Scope, owner: Any
) -> None:
    conversation = await hold_session(log, scope, TALK)
    turn = await take_turn(log, scope, conversation, 4)
    await log.finish_turn(
        "acme", conversation, turn.turn_id, turn.attempt_id, completed=False, stop_reason="error", messages=[], trace={}
    )
    let_pass(owner, 31)

    await sweep.run()

    assert (await sessions.get(ADA, conversation)).end_reason == "ErrorClosed"


async def test_an_end_that_the_bus_did_not_take_is_announced_by_the_sweep(
    sessions: Sessions, sweep: SessionSweep, log: PostgresConversationLog, scope: Scope, owner: Any, bus: RecordingBus
) -> None:
    conversation = await hold_session(log, scope, TALK)
    bus.broken = True
    assert (await sessions.close(ADA, conversation)).status == "ended"
    let_pass(owner, PATIENCE_MINUTES + 1)
    assert await sweep.run() == Swept(0, 0, 1)
    bus.broken = False

    let_pass(owner, PATIENCE_MINUTES + 1)
    assert await sweep.run() == Swept(0, 0, 0)  # the pause has doubled
    let_pass(owner, PATIENCE_MINUTES)
    assert await sweep.run() == Swept(0, 1, 0)
    assert [event["conversation_id"] for event in bus.events] == [str(conversation)]


async def test_users_see_their_own_sessions_and_administrators_the_tenants(
    sessions: Sessions, log: PostgresConversationLog, scope: Scope
) -> None:
    hers = [await hold_session(log, scope, TALK) for _ in range(3)]
    other = await hold_session(log, Scope("acme", "eve", scope.agent_id), TALK)

    first = await sessions.list(ADA, limit=2)
    rest = await sessions.list(ADA, cursor=first.next_cursor, limit=2)
    assert [s.conversation_id for s in (*first.items, *rest.items)] == hers[::-1]
    assert rest.next_cursor is None
    assert (await sessions.list(ADA, agent_id=uuid4())).items == []
    assert {s.conversation_id for s in (await sessions.list(ADMIN)).items} == {*hers, other}
    assert [s.conversation_id for s in (await sessions.list(ADMIN, user_id="eve")).items] == [other]
    assert (await sessions.list(STRANGER)).items == []
    with pytest.raises(Forbidden):
        await sessions.list(EVE, user_id="ada")
    with pytest.raises(InvalidInput):
        await sessions.list(ADA, cursor="nonsense")
    for caller in (EVE, STRANGER):
        for asked in (sessions.get, sessions.messages, sessions.close):
            with pytest.raises(NotFound):
                await asked(caller, hers[0])
    assert (await sessions.get(ADMIN, hers[0])).user_id == "ada"


async def test_the_log_is_read_in_pages(sessions: Sessions, log: PostgresConversationLog, scope: Scope) -> None:
    conversation = await hold_session(log, scope, TALK)

    first = await sessions.messages(ADA, conversation, limit=3)
    rest = await sessions.messages(ADA, conversation, cursor=first.next_cursor, limit=3)

    assert [m.seq for m in first.items] == [1, 2, 3]
    assert [(m.seq, m.content[0]["text"]) for m in rest.items] == [(4, "fine")]
    assert rest.next_cursor is None
    with pytest.raises(InvalidInput):
        await sessions.messages(ADA, conversation, cursor="x")


async def test_a_thumb_is_kept_per_message_and_user(
    sessions: Sessions, log: PostgresConversationLog, scope: Scope, database: Database
) -> None:
    conversation = await hold_session(log, scope, TALK)
    answer = (await sessions.messages(ADA, conversation)).items[1].message_id

    await sessions.rate(ADA, conversation, answer, 1, "good")
    changed = await sessions.rate(ADA, conversation, answer, -1, None)

    assert (changed.rating, changed.comment) == (-1, None)
    for caller, talk, message in ((EVE, conversation, answer), (ADA, uuid4(), answer), (ADA, conversation, uuid4())):
        with pytest.raises(NotFound):
            await sessions.rate(caller, talk, message, 1, None)
