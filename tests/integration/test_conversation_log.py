"""The log: claimed by one turn at a time, numbered without gaps, retried without doubles."""

from __future__ import annotations

import random
from dataclasses import asdict, replace
from uuid import UUID, uuid4

import pytest

from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import Database
from octopus.cloud.queries import load_queries
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.types import NewMessage, NewTurn, TurnContext, TurnDefaults, text_block
from octopus.memory_config import STRIDES_PER_BUDGET, MemoryConfig
from octopus.recall import Scope
from octopus.working.pruning import LogExtent, prune, whole_turns
from octopus.working.store import PostgresFactorStore


@pytest.fixture
def log(database: Database) -> PostgresConversationLog:
    return PostgresConversationLog(database)


def user_says(text: str, tokens: int = 10) -> NewMessage:
    return NewMessage(uuid4(), "user", [text_block(text)], tokens)


def assistant_says(text: str, tokens: int = 10) -> NewMessage:
    return NewMessage(uuid4(), "assistant", [text_block(text)], tokens, "end_turn")


def turn(key: str, requested_in: UUID | None = None) -> NewTurn:
    return NewTurn(uuid4(), key, requested_in, lease_s=30)


def defaults(tokens: int = 10_000) -> TurnDefaults:
    return TurnDefaults("claude-test", 1.0, tokens, output_reserve_tokens=0, min_history_turns=1)


async def load(
    log: PostgresConversationLog, scope: Scope, conversation: UUID | None, key: str, tokens: int = 10_000
) -> TurnContext:
    return await log.load_turn_context(
        scope.tenant_id, scope.user_id, scope.agent_id, conversation, key, defaults(tokens)
    )


async def begin(log: PostgresConversationLog, scope: Scope, first: NewTurn) -> UUID:
    conversation = uuid4()
    assert await log.open_conversation(*_who(scope), conversation, first, user_says("hello"))
    return conversation


async def finish(log: PostgresConversationLog, scope: Scope, conversation: UUID, attempt: NewTurn) -> bool:
    return await log.finish_turn(
        scope.tenant_id,
        conversation,
        attempt.turn_id,
        attempt.attempt_id,
        completed=True,
        stop_reason="end_turn",
        messages=[assistant_says("hi")],
        trace={"n": 1},
    )


def _who(scope: Scope) -> tuple[str, str, UUID]:
    return scope.tenant_id, scope.user_id, scope.agent_id


async def test_a_finished_turn_is_found_by_its_message_id(log: PostgresConversationLog, scope: Scope) -> None:
    first = turn("m1")
    conversation = await begin(log, scope, first)
    assert await finish(log, scope, conversation, first)

    context = await load(log, scope, None, "m1")

    assert context.earlier is not None
    assert (context.earlier.turn_id, context.earlier.status) == (first.turn_id, "completed")
    assert context.earlier.trace == {"n": 1}
    assert [(m.seq, m.role) for m in context.history] == [(1, "user"), (2, "assistant")]
    assert context.conversation is not None
    assert context.conversation.last_seq == 2


async def test_the_same_first_message_opens_one_conversation(log: PostgresConversationLog, scope: Scope) -> None:
    await begin(log, scope, turn("m1"))
    assert not await log.open_conversation(*_who(scope), uuid4(), turn("m1"), user_says("hello"))


async def test_a_held_conversation_cannot_be_claimed(log: PostgresConversationLog, scope: Scope) -> None:
    first = turn("m1")
    conversation = await begin(log, scope, first)
    second = turn("m2", conversation)

    assert not await log.claim_turn(scope.tenant_id, conversation, 1, second, user_says("again"))

    await finish(log, scope, conversation, first)
    assert not await log.claim_turn(scope.tenant_id, conversation, 1, second, user_says("stale"))
    assert await log.claim_turn(scope.tenant_id, conversation, 2, second, user_says("again"))


async def test_a_turn_that_lost_its_conversation_writes_nothing(
    log: PostgresConversationLog, scope: Scope, database: Database
) -> None:
    first = NewTurn(uuid4(), "m1", None, lease_s=0)
    conversation = await begin(log, scope, first)
    assert await log.claim_turn(scope.tenant_id, conversation, 1, turn("m2", conversation), user_says("mine now"))

    assert not await finish(log, scope, conversation, first)
    assert not await log.renew_lease(scope.tenant_id, conversation, first.turn_id, first.attempt_id, 30)
    context = await load(log, scope, conversation, "other")
    assert [m.role for m in context.history] == ["user", "user"]


async def test_an_interrupted_turn_runs_again_without_its_half_answer(
    log: PostgresConversationLog, scope: Scope
) -> None:
    first = turn("m1")
    conversation = await begin(log, scope, first)
    await log.finish_turn(
        scope.tenant_id,
        conversation,
        first.turn_id,
        first.attempt_id,
        completed=False,
        stop_reason="error",
        messages=[assistant_says("half an ans")],
        trace={},
    )
    context = await load(log, scope, None, "m1")
    assert context.earlier is not None
    assert context.earlier.status == "interrupted"

    again = replace(first, attempt_id=uuid4())
    assert await log.reclaim_turn(scope.tenant_id, context.earlier, again.attempt_id, 30)
    assert not await finish(log, scope, conversation, first)  # the first attempt is dead, whatever it believes
    assert not await log.renew_lease(scope.tenant_id, conversation, first.turn_id, first.attempt_id, 30)
    assert await finish(log, scope, conversation, again)
    assert await finish(log, scope, conversation, again)  # a commit whose answer was lost is written again

    messages = await log.turn_messages(scope.tenant_id, first.turn_id)
    assert [(m.seq, m.role, m.content[0]["text"]) for m in messages] == [
        (1, "user", "hello"),
        (2, "assistant", "hi"),
    ]


async def test_a_turn_that_was_completed_meanwhile_is_not_run_again(log: PostgresConversationLog, scope: Scope) -> None:
    first = turn("m1")
    conversation = await begin(log, scope, first)
    running = (await load(log, scope, None, "m1")).earlier
    assert running is not None
    await finish(log, scope, conversation, first)

    assert not await log.reclaim_turn(scope.tenant_id, running, uuid4(), 30)
    assert len(await log.turn_messages(scope.tenant_id, first.turn_id)) == 2


async def test_history_is_read_only_as_far_as_the_budget_reaches(
    log: PostgresConversationLog, scope: Scope, database: Database
) -> None:
    first = turn("m0")
    conversation = await begin(log, scope, first)
    await finish(log, scope, conversation, first)
    for n in range(1, 6):
        following = turn(f"m{n}", conversation)
        await log.claim_turn(scope.tenant_id, conversation, 2 * n, following, user_says(f"message {n}"))
        await finish(log, scope, conversation, following)

    async def seqs(tokens: int) -> list[int]:
        return [message.seq for message in (await load(log, scope, conversation, "next", tokens)).history]

    assert await seqs(60) == [7, 8, 9, 10, 11, 12]
    await PostgresFactorStore(database).correct_factor("claude-test", before=1.0, after=2.0)
    assert await seqs(60) == [9, 10, 11, 12]  # every token of ours is two of the model's


async def test_of_the_history_nothing_is_missing_that_would_be_kept(
    log: PostgresConversationLog, database: Database
) -> None:
    """Whatever the agent's configuration, and however much of the budget other sections take."""
    rng = random.Random(3)
    conversation = uuid4()
    for number in range(24):
        following = turn(f"m{number}", conversation if number else None)
        asked = user_says("?", rng.choice([5, 40, 300, 900]))
        if number:
            await log.claim_turn("acme", conversation, 2 * number, following, asked)
        else:
            agent = await PostgresAgentStore(database).create_agent("acme", "aria", "", "You.", None, {})
            scope = Scope("acme", "ada", agent.agent_id)
            await log.open_conversation("acme", "ada", agent.agent_id, conversation, following, asked)
        await finish(log, scope, conversation, following)
    everything = (await load(log, scope, conversation, "next", tokens=10**6)).history
    assert len(everything) == 48
    extent = LogExtent(sum(message.token_count for message in everything), 24)

    for _ in range(200):
        config = MemoryConfig(
            max_working_memory_tokens=rng.randint(1_000, 9_000),
            output_reserve_tokens=rng.randint(256, 450),
            min_history_turns=rng.randint(0, 8),
            pruning_strategy=rng.choice(["fifo", "sliding_window"]),
            sliding_window_turns=rng.randint(1, 30),
        )
        asked_for = TurnDefaults(
            "claude-test", 1.0, config.max_working_memory_tokens, config.output_reserve_tokens, config.min_history_turns
        )
        read = (await log.load_turn_context("acme", "ada", agent.agent_id, conversation, "next", asked_for)).history
        free = rng.randint(0, config.input_budget)
        kept = prune(whole_turns(everything), extent, config, free)
        assert list(prune(whole_turns(read), extent, config, free)) == list(kept)


async def test_an_agent_with_a_larger_budget_gets_more_history(
    log: PostgresConversationLog, database: Database
) -> None:
    """What holds for agents that have not chosen is no bound for one that has."""
    chosen = {"max_working_memory_tokens": 400_000}
    agent = await PostgresAgentStore(database).create_agent("acme", "elephant", "", "You.", None, chosen)
    scope = Scope("acme", "ada", agent.agent_id)
    first = turn("m0")
    conversation = await begin(log, scope, first)
    await finish(log, scope, conversation, first)
    for n in range(1, 6):
        following = turn(f"m{n}", conversation)
        long = user_says(f"message {n}", tokens=100_000)
        await log.claim_turn(scope.tenant_id, conversation, 2 * n, following, long)
        await finish(log, scope, conversation, following)

    history = (await load(log, scope, conversation, "next", tokens=150_000)).history
    assert [turn.messages[0].seq for turn in whole_turns(history)] == [7, 9, 11]  # a fourth does not fit


async def test_history_is_one_range_of_an_index(log: PostgresConversationLog, scope: Scope, database: Database) -> None:
    params = {
        "tenant_id": scope.tenant_id,
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "conversation_id": await begin(log, scope, turn("m1")),
        "client_message_id": "next",
        **asdict(defaults()),
        "strides": STRIDES_PER_BUDGET,
    }
    query = "explain " + load_queries("octopus.conversations")["turn_history"]
    plan = [row["QUERY PLAN"] for row in await database.all(scope.tenant_id, query, params)]
    assert [line for line in plan if "Index Cond" in line and "cumulative_tokens >" in line], plan


async def test_another_users_conversation_is_not_there(log: PostgresConversationLog, scope: Scope) -> None:
    conversation = await begin(log, scope, turn("m1"))
    for tenant, user in [("acme", "eve"), ("other", "ada")]:
        context = await log.load_turn_context(tenant, user, scope.agent_id, conversation, "m1", defaults())
        assert (context.conversation, context.earlier, context.history) == (None, None, [])
