"""Working memory: the documented order and formats, and what holds for every conversation and every budget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopus.conversations.types import Message, text_of
from octopus.episodic.types import Recollection
from octopus.errors import BudgetExceeded
from octopus.procedural.types import Guidance, Step
from octopus.semantic.types import Knowledge
from octopus.working.assembly import Ingredients, RunningSummary, assemble
from octopus.working.pruning import LogExtent, whole_turns
from octopus.working.types import Tokens, WorkingMemory
from tests.support.memories import a_chunk, a_log, a_procedure, an_agent, an_episode, words

PLAIN = Tokens(words, 1.0)
NEVER = 10**9  # a cache minimum that no prompt reaches

ONBOARDING = a_procedure(
    "onboard_vendor",
    "Takes a vendor on board.",
    Step(1, "Ask for the vendor's name."),
    Step(2, "Look it up.", tool_name="vendor_lookup", condition="the name is known"),
    Step(3, "Send a welcome.", is_optional=True),
)


def ingredients(
    messages: Sequence[Message] = (), message: str = "Can I take 5 days in June?", **parts: Any
) -> Ingredients:
    units = whole_turns(messages)
    defaults: dict[str, Any] = {
        "agent": an_agent(),
        "guidance": Guidance(),
        "knowledge": Knowledge(),
        "recollection": Recollection(),
    }
    extent = LogExtent(sum(unit.tokens for unit in units), len(units))
    return Ingredients(**{**defaults, "message": message, "turns": units, "extent": extent, **parts})


FULL = ingredients(
    a_log([("How many days do I have?", 0, "You have 12.")]),
    guidance=Guidance(ONBOARDING),
    knowledge=Knowledge([a_chunk(1, "Annual leave is 28 days."), a_chunk(2, "Ask two weeks ahead.")]),
    recollection=Recollection(
        [an_episode(1, "Asked about June.", "Prefers June.", day=20), an_episode(2, "Moved.", day=2)]
    ),
)


def texts(memory: WorkingMemory) -> list[str]:
    """Everything that the model reads, block by block, in order."""
    blocks = [*memory.system, *(block for message in memory.messages for block in message["content"])]
    return [block["text"] for block in blocks if block["type"] == "text"]


def test_the_documented_order_and_formats() -> None:
    prompt, procedure, knowledge, episodes, question, answer, message = texts(assemble(FULL, PLAIN, NEVER))
    assert prompt == "You are Aria."
    assert procedure == (
        "[Procedure: onboard_vendor]\n"
        "Takes a vendor on board.\n"
        "Follow these steps exactly:\n"
        "Step 1: Ask for the vendor's name.\n"
        "Step 2: Look it up. [Only if: the name is known]\n"
        "  → Use tool: vendor_lookup\n"
        "Step 3: (Optional) Send a welcome.\n"
    )
    assert knowledge.startswith("[Retrieved Knowledge]\n")
    assert knowledge.endswith(
        "Source: handbook.md\nAnnual leave is 28 days.\n---\nSource: handbook.md\nAsk two weeks ahead.\n---\n"
    )
    assert episodes.startswith("[Past Conversation Context]\n")
    assert episodes.endswith("- 2026-03-02: Moved.\n- 2026-03-20: Asked about June.\n  • Prefers June.\n")
    assert (question, answer, message) == ("How many days do I have?", "You have 12.", "Can I take 5 days in June?")


def test_the_cache_layout_has_the_same_sections_behind_the_history() -> None:
    cached = ingredients(**_parts(FULL, agent=an_agent(context_layout="cache")))
    documented, cache = texts(assemble(FULL, PLAIN, NEVER)), texts(assemble(cached, PLAIN, NEVER))
    assert sorted(documented) == sorted(cache)
    assert [text.splitlines()[0] for text in cache] == [
        "You are Aria.",
        "How many days do I have?",
        "You have 12.",
        "[Procedure: onboard_vendor]",
        "[Retrieved Knowledge]",
        "[Past Conversation Context]",
        "Can I take 5 days in June?",
    ]


def test_empty_sections_leave_no_header() -> None:
    assert texts(assemble(ingredients(), PLAIN, NEVER)) == ["You are Aria.", "Can I take 5 days in June?"]


def test_breakpoints_stand_only_where_the_prefix_is_long_enough() -> None:
    long = ingredients(
        a_log([("word " * 900, 0, "word " * 900)]), agent=an_agent("word " * 500, context_layout="cache")
    )
    both = assemble(long, PLAIN, 400)
    assert [block.get("cache_control") for block in both.system] == [{"type": "ephemeral"}]
    assert "cache_control" in both.messages[1]["content"][-1]
    only_history = assemble(long, PLAIN, 1_000)
    assert "cache_control" not in only_history.system[0]
    assert "cache_control" in only_history.messages[1]["content"][-1]
    assert "cache_control" not in json.dumps([assemble(long, PLAIN, NEVER).messages])


def test_the_documented_layout_marks_the_history_only_within_a_tool_loop() -> None:
    long = ingredients(a_log([("word " * 900, 0, "word " * 900)]))
    assert "cache_control" not in json.dumps(assemble(long, PLAIN, 400).messages)
    looping = replace(long, exchange_tokens=50)
    assert "cache_control" in assemble(looping, PLAIN, 400).messages[1]["content"][-1]


def test_the_log_itself_is_not_changed_by_a_breakpoint() -> None:
    log = a_log([("word " * 900, 0, "word " * 900)])
    before = [list(map(dict, message.content)) for message in log]
    assemble(ingredients(log, agent=an_agent(context_layout="cache")), PLAIN, 10)
    assert [message.content for message in log] == before


def test_what_cannot_fit_is_refused_with_the_numbers() -> None:
    tight = an_agent("word " * 500, max_working_memory_tokens=1_000, output_reserve_tokens=300)
    with pytest.raises(BudgetExceeded, match=r"System prompt \(500 tokens\).*message \(500.*700 tokens") as refused:
        assemble(ingredients(agent=tight), PLAIN, NEVER)
    assert refused.value.extra["budget"] == 700


def test_a_chunk_goes_whole_or_not_at_all() -> None:
    agent = an_agent(semantic_context_max_tokens=50)
    knowledge = Knowledge([a_chunk(1, "word " * 15), a_chunk(2, "long " * 30), a_chunk(3, "fits")])
    memory = assemble(ingredients(agent=agent, knowledge=knowledge), PLAIN, NEVER)
    items = next(section.items for section in memory.sections if section.name == "knowledge")
    assert [item.left_out for item in items] == [None, "section_cap", None]
    assert "long" not in " ".join(texts(memory))


def test_history_gives_way_first_then_the_lowest_ranked_memories() -> None:
    agent = an_agent(
        max_working_memory_tokens=1_000, output_reserve_tokens=256, reserved_for_current=50, min_history_turns=1
    )
    turns = a_log([("early " * 120, 0, "a"), ("late " * 500, 0, "b")])
    knowledge = Knowledge([a_chunk(1, "best " * 60), a_chunk(2, "worst " * 110)])
    memory = assemble(ingredients(turns, agent=agent, knowledge=knowledge), PLAIN, NEVER)
    text = " ".join(texts(memory))
    assert ("late" in text, "early" in text, "best" in text, "worst" in text) == (True, False, True, False)
    assert memory.pruning.turns_dropped == 1


def test_history_that_alone_exceeds_the_budget_does_not_cost_the_memories() -> None:
    agent = an_agent(max_working_memory_tokens=1_000, output_reserve_tokens=256, reserved_for_current=50)
    knowledge = Knowledge([a_chunk(1, "best " * 60)])
    memory = assemble(ingredients(a_log([("late " * 800, 0, "b")]), agent=agent, knowledge=knowledge), PLAIN, NEVER)
    assert memory.pruning.turns_kept == 0
    assert "best" in " ".join(texts(memory))


def test_a_summary_stands_for_the_turns_it_covers() -> None:
    given_turns = ingredients(a_log([("one", 0, "1"), ("two", 0, "2")])).after(RunningSummary("They counted.", 2))
    memory = assemble(given_turns, PLAIN, NEVER)
    assert texts(memory)[1:] == ["[Earlier conversation summary]: They counted.", "two", "2", given_turns.message]
    assert memory.pruning.summary_through == 2


def test_a_full_conversation_is_not_cut_anew_on_each_turn() -> None:
    agent = an_agent(max_working_memory_tokens=2_000, output_reserve_tokens=256, reserved_for_current=50)
    firsts = []
    for length in range(40, 80):
        log = a_log([("word " * 25, 0, "word " * 25)] * length)
        firsts.append(assemble(ingredients(log, agent=agent), PLAIN, NEVER).pruning.first_seq)
    changes = sum(a != b for a, b in pairwise(firsts))
    assert changes <= 8  # a cut on every turn would be 39


def test_a_sliding_window_keeps_at_most_its_turns() -> None:
    agent = an_agent(pruning_strategy="sliding_window", sliding_window_turns=10)
    kept = [
        assemble(ingredients(a_log([("q", 0, "a")] * length), agent=agent), PLAIN, NEVER).pruning.turns_kept
        for length in range(1, 40)
    ]
    assert max(kept) == 10
    assert min(kept[9:]) == 8


TURNS = st.lists(
    st.tuples(
        st.integers(1, 120).map(lambda n: "ask " * n),
        st.integers(0, 3),
        st.integers(0, 120).map(lambda n: "answer " * n),
    ),
    max_size=25,
)
CONFIGS = st.fixed_dictionaries(
    {
        "max_working_memory_tokens": st.integers(1_000, 4_000),
        "output_reserve_tokens": st.just(256),
        "reserved_for_current": st.integers(0, 300),
        "pruning_strategy": st.sampled_from(["fifo", "sliding_window", "summarize"]),
        "sliding_window_turns": st.integers(1, 12),
        "min_history_turns": st.integers(0, 5),
        "context_layout": st.sampled_from(["documented", "cache"]),
        "semantic_context_max_tokens": st.integers(50, 600),
        "episodic_max_tokens": st.integers(50, 600),
    }
)
CHUNKS = st.lists(st.integers(1, 150).map(lambda n: "chunk " * n), max_size=6)
EPISODES = st.lists(st.integers(1, 80).map(lambda n: "episode " * n), max_size=4)


@settings(max_examples=300, deadline=None)
@given(TURNS, CONFIGS, CHUNKS, EPISODES, st.integers(1, 400), st.floats(1.0, 2.0), st.booleans(), st.booleans())
def test_whatever_was_said_and_recalled(
    turns: list[tuple[str, int, str]],
    config: dict[str, Any],
    chunks: list[str],
    episodes: list[str],
    message_words: int,
    factor: float,
    procedure: bool,
    summary: bool,
) -> None:
    log = a_log(turns)
    what = ingredients(
        log,
        message="now " * message_words,
        agent=an_agent(**config),
        guidance=Guidance(ONBOARDING if procedure else None),
        knowledge=Knowledge([a_chunk(rank, text) for rank, text in enumerate(chunks, 1)]),
        recollection=Recollection([an_episode(rank, text) for rank, text in enumerate(episodes, 1)]),
    )
    if summary and len(log) > 4:
        what = what.after(RunningSummary("summary " * 20, log[3].seq))
    tokens = Tokens(words, factor)
    try:
        memory = assemble(what, tokens, 200)
    except BudgetExceeded:
        return

    assert memory.budget.used <= memory.budget.available
    assert memory.budget.used == sum(section.tokens for section in memory.sections)
    assert memory == assemble(what, tokens, 200)
    assert memory.messages[-1]["role"] == "user"
    assert memory.messages[-1]["content"][-1]["text"] == what.message
    roles = [message["role"] for message in memory.messages]
    assert all(a != b for a, b in pairwise(roles))
    assert roles[0] == "user"
    _calls_have_their_results(memory.messages)
    _history_is_an_end_of_the_log(memory, log)
    _nothing_is_halved(memory, what)


def _calls_have_their_results(messages: list[dict[str, Any]]) -> None:
    for before, after in zip([{"content": []}, *messages], messages, strict=False):
        used = [block["id"] for block in before["content"] if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in after["content"] if block["type"] == "tool_result"]
        assert results == used
    assert not any(block["type"] == "tool_use" for block in messages[-1]["content"])


def _history_is_an_end_of_the_log(memory: WorkingMemory, log: list[Message]) -> None:
    first = memory.pruning.first_seq
    kept = [text_of(message.content) for message in log if first and message.seq >= first and text_of(message.content)]
    seen = [text for text in texts(memory) if text.startswith(("ask", "answer"))]
    assert seen == kept


def _nothing_is_halved(memory: WorkingMemory, what: Ingredients) -> None:
    """What is included is there as a whole, and there is no more of it than was included."""
    text = "\n".join(texts(memory))
    items = {section.name: section.items for section in memory.sections}
    for chunk, item in zip(what.knowledge.chunks, items["knowledge"], strict=True):
        if item.left_out is None:
            assert f"\n{chunk.content.strip()}\n---\n" in text
    assert text.count("\nSource: ") == sum(item.left_out is None for item in items["knowledge"])
    assert text.count("\n- 2026-") == sum(item.left_out is None for item in items["episodes"])


def _parts(given: Ingredients, **changes: Any) -> dict[str, Any]:
    names = ("message", "guidance", "knowledge", "recollection", "turns", "extent")
    return {name: getattr(given, name) for name in names} | changes
