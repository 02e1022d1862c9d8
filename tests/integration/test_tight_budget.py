"""Long conversations in small budgets: folding, and token counts that the provider corrects."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import PLATFORM, Database
from octopus.cloud.tokens import count_tokens
from octopus.errors import ModelUnavailable
from octopus.model import ModelRequest, Usage
from octopus.working.folding import ExtendedSummary
from octopus.working.store import PostgresFactorStore
from octopus.working.token_factor import corrected
from tests.support.embedder import WordEmbedder
from tests.support.house import House, start_of
from tests.support.model import Say, ScriptedModel

LONG = "A sentence about nothing that anybody would want to remember for long. " * 8


@pytest.fixture
async def house(database: Database, embedder: WordEmbedder) -> House:
    config = {
        "max_working_memory_tokens": 1_600,
        "output_reserve_tokens": 300,
        "reserved_for_current": 100,
        "pruning_strategy": "summarize",
        "min_history_turns": 1,
    }
    agent = await PostgresAgentStore(database).create_agent("acme", "tight", "", "You are brief.", None, config)
    return House(database, embedder, agent)


async def talk(house: House, turns: int) -> UUID:
    """A conversation of long messages and short answers."""
    conversation_id = None
    for number in range(turns):
        events = await house.take(f"{LONG} number {number}.", conversation_id=conversation_id)
        assert events[-1].name == "turn_end"
        conversation_id = start_of(events).conversation_id
    assert conversation_id
    return conversation_id


def shown(request: ModelRequest) -> str:
    return "\n".join(block["text"] for message in request.messages for block in message["content"])


async def summary_of(house: House, conversation_id: UUID) -> Any:
    query = "select summary, summary_through from conversations where conversation_id = %(id)s"
    return await house.database.one("acme", query, {"id": conversation_id})


async def test_what_is_pruned_is_folded_into_a_summary_that_is_extended(house: House) -> None:
    house.model.structured_replies = [ExtendedSummary(summary=f"SUMMARY {n}") for n in range(1, 10)]

    conversation_id = await talk(house, 16)

    folds = house.model.structured_requests
    assert len(folds) >= 2
    first, second = (fold["messages"][0]["content"] for fold in folds[:2])
    assert "(none)" in first
    assert "number 0." in first
    assert "SUMMARY 1" in second
    assert "number 0." not in second  # extended, not recomputed
    last = shown(house.model.requests[-1])
    assert f"[Earlier conversation summary]: SUMMARY {len(folds)}" in last
    stored = await summary_of(house, conversation_id)
    assert stored["summary"] == f"SUMMARY {len(folds)}"
    # Every turn is either in the summary or in the prompt.
    in_prompt = [number for number in range(16) if f"number {number}." in last]
    assert in_prompt == list(range(stored["summary_through"] // 2, 16))


async def test_a_summarizer_that_fails_leaves_plain_pruning(house: House) -> None:
    house.model.structured_replies = [ModelUnavailable()] * 20

    conversation_id = await talk(house, 12)

    trace = house.observer.traces[-1]
    assert trace.pruning.summary_failed
    assert trace.pruning.turns_kept >= 1
    assert trace.budget.used <= trace.budget.available
    assert (await summary_of(house, conversation_id))["summary"] is None


async def test_a_retry_folds_neither_its_own_message_nor_its_half_answer(house: House) -> None:
    house.model.structured_replies = [ExtendedSummary(summary=f"SUMMARY {n}") for n in range(1, 20)]
    conversation_id = await talk(house, 6)
    house.model.script = [Say("HALF", error=ModelUnavailable()), Say("WHOLE"), Say("fine")]
    await house.take(f"{LONG} retried.", conversation_id=conversation_id, message_id="m")
    await house.take(f"{LONG} retried.", conversation_id=conversation_id, message_id="m")
    await house.take("And now?", conversation_id=conversation_id)

    folded = "".join(fold["messages"][0]["content"] for fold in house.model.structured_requests)
    assert "HALF" not in folded
    last = shown(house.model.requests[-1])
    assert "retried." in last + folded
    assert "WHOLE" in last + folded


async def test_personal_data_is_taken_out_before_it_is_folded(house: House) -> None:
    agents = PostgresAgentStore(house.database)
    config = {**house.agent.memory_config.model_dump(exclude_defaults=True), "pii_redaction": True}
    house.agent = await agents.create_agent("acme", "discreet", "", "You are brief.", None, config)
    house.model.structured_replies = [ExtendedSummary(summary="S")] * 20
    first = await house.take(f"{LONG} Write to freya.holm@example.com about it.")
    for _ in range(10):
        await house.take(LONG, conversation_id=start_of(first).conversation_id)

    folded = house.model.structured_requests[0]["messages"][0]["content"]
    assert "Write to" in folded
    assert "freya.holm@example.com" not in folded


async def test_a_slow_summarizer_is_not_waited_for(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octopus.turn.FOLDING_S", 0.05)

    async def forever(**_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(house.model, "structured", forever)
    await talk(house, 10)
    assert house.observer.traces[-1].pruning.summary_failed


async def test_near_the_limit_the_provider_counts(house: House, database: Database) -> None:
    """It counts double what we do: the prompt shrinks to what really fits."""
    house.model.structured_replies = [ExtendedSummary(summary="S")] * 50
    counted: list[int] = []

    def double(request: ModelRequest) -> int:
        counted.append(len(house.model.requests))
        return 2 * count_tokens(shown(request))

    house.model.counts = double
    house.model.script = [Say("ok", usage=Usage(0, 1))]  # a provider that reports no usage
    await talk(house, 12)

    exact = [house.model.requests[n] for n in counted]
    assert 2 <= len(exact) < 12
    assert all(2 * count_tokens(shown(request)) <= 1_300 for request in exact)
    assert await factor_of("test-model", database) is None  # short prompts teach nothing


async def test_usage_corrects_the_factor_of_every_environment(house: House, database: Database) -> None:
    usage = Usage(4_000, 1, cache_read_tokens=1_000, cache_write_tokens=3_000)
    house.agent = await PostgresAgentStore(database).create_agent("acme", "roomy", "", LONG * 40, None, {})
    house.model = ScriptedModel(Say("ok", usage=usage))
    await house.take("hi")
    trace = house.observer.traces[0]
    observed = 8_000 / round(trace.budget.used / trace.token_factor)
    assert 1.25 < observed < 3.0

    await house.take("hi again")
    assert house.observer.traces[1].token_factor == pytest.approx(observed)
    assert await factor_of("another-model", database) is None


async def test_a_turn_that_began_earlier_does_not_lower_a_factor_that_has_risen_since(database: Database) -> None:
    store = PostgresFactorStore(database)
    for before, after, kept in [
        (1.25, 1.24, 1.24),
        (1.24, 1.6, 1.6),
        (1.24, 1.23, 1.6),
        (1.24, 1.7, 1.7),
        (1.7, 1.6, 1.6),
    ]:
        await store.correct_factor("claude", before, after)
        assert await factor_of("claude", database) == kept


async def factor_of(model: str, database: Database) -> float | None:
    row = await database.one(PLATFORM, "select factor from token_factors where model = %(model)s", {"model": model})
    return row["factor"] if row else None


@pytest.mark.parametrize(
    ("factor", "observed", "after"),
    [(1.25, 1.5, 1.5), (1.25, 1.05, 1.24), (1.25, 99.0, 3.0), (1.0, 0.2, 1.0), (1.25, 1.25, 1.25)],
)
def test_a_factor_rises_at_once_falls_slowly_and_stays_in_bounds(factor: float, observed: float, after: float) -> None:
    assert corrected(factor, observed) == pytest.approx(after)
