"""Matching: names, precedence, and time that grows with the message and with nothing else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
import re2

from octopus.procedural.match import TriggerSet
from octopus.procedural.trigger import expression, options, validate
from octopus.procedural.types import Precedence, Procedure
from tests.support.procedures import dense_message, many_procedures, procedure, usual_message

AGENT = uuid4()


@pytest.mark.parametrize("message", ["reset_password", "Reset Password", " reset-password! "])
def test_a_name_goes_before_every_trigger(message: str) -> None:
    triggers = TriggerSet(
        [procedure("reset_password", "never"), procedure("other", "reset", agent_id=AGENT, priority=9)]
    )
    match = triggers.decide(message)
    assert match is not None
    assert (match.procedure.name, match.rule) == ("reset_password", "name")


def test_a_message_that_only_contains_a_name_is_not_that_name() -> None:
    assert TriggerSet([procedure("reset", "never")]).decide("reset it") is None


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        (procedure("b", "create", agent_id=AGENT), procedure("a", "create.*report", priority=9), "own"),
        (procedure("b", "create", priority=1), procedure("a", "create.*report"), "priority"),
        (procedure("b", "create.*report"), procedure("a", "create"), "length"),
        (procedure("a", "create"), procedure("b", "report"), "name"),
    ],
)
def test_precedence(first: Procedure, second: Procedure, rule: Precedence) -> None:
    for order in ([first, second], [second, first]):
        match = TriggerSet(order).decide("please create the report")
        assert match is not None
        assert (match.procedure.name, match.rule, match.decided_by) == (first.name, "pattern", rule)


def test_the_only_match_is_said_to_be_alone() -> None:
    match = TriggerSet([procedure("a", "create"), procedure("b", "delete")]).decide("create it")
    assert match is not None
    assert match.decided_by == "alone"


def test_hits_are_told_in_characters() -> None:
    [hit] = TriggerSet([procedure("a", "größe")]).hits("die Größe")
    assert (hit.start, hit.end) == (4, 9)


def test_nothing_is_followed_where_there_is_nothing() -> None:
    assert TriggerSet([]).decide("reset my password") is None


def test_patterns_without_any_literal_are_found_too() -> None:
    match = TriggerSet([procedure("a", r"\d{4}-\d+"), procedure("b", "vendor")]).decide("order 2026-17")
    assert match is not None
    assert match.procedure.name == "a"


def test_long_lists_of_phrases_are_told_apart() -> None:
    rng = random.Random(5)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(20_000)]
    phrases = ["\n".join(" ".join(rng.sample(words, 5)) for _ in range(20)) for _ in range(500)]
    triggers = TriggerSet(procedure(f"p{n}", p, trigger_kind="phrases") for n, p in enumerate(phrases))
    for n in range(0, 500, 50):
        said = " ".join(rng.sample(words, 3)) + " " + phrases[n].splitlines()[7]
        match = triggers.decide(said)
        assert match is not None
        assert match.procedure.name == f"p{n}"


def test_the_decision_is_that_of_every_trigger_tried_by_itself() -> None:
    rng = random.Random(6)
    procedures = [*many_procedures(rng, 500, AGENT), procedure("digits", r"\d\d"), procedure("any", ".+", priority=-1)]
    triggers = TriggerSet(procedures)
    for make in (usual_message, dense_message):
        message = make(rng)
        alone = sorted(tried_by_itself(procedures, message))
        assert [hit.procedure.name for hit in triggers.hits(message)] == [name for *_, name in alone]
        match = triggers.decide(message)
        assert match is not None
        assert match.procedure.name == alone[0][-1]
        assert alone[-1][-1] == "any"


def tried_by_itself(procedures: list[Procedure], message: str) -> Iterator[tuple[bool, int, int, str]]:
    for it in procedures:
        found = re2.search(expression(it.trigger_kind, it.trigger_pattern), message, options())
        if found:
            yield it.agent_id is None, -it.priority, found.start() - found.end(), it.name


@pytest.mark.parametrize("make", [usual_message, dense_message])
def test_ten_thousand_procedures_and_ten_thousand_characters(make: Callable[[random.Random], str]) -> None:
    """How long it takes is a question for `make bench-procedures`."""
    rng = random.Random(7)
    procedures = many_procedures(rng, 10_000, AGENT)
    message = make(rng)
    match = TriggerSet(procedures).decide(message)
    assert match is not None
    rank = match.procedure.agent_id, match.procedure.priority
    equals = [it for it in procedures if (it.agent_id, it.priority) == rank]
    assert match.procedure.name == min(tried_by_itself(equals, message))[-1]


# Patterns that make backtracking engines take for ever: nested and overlapping repetitions, from OWASP, and the
# incidents at Stack Overflow (2016) and Cloudflare (2019), and counted ones that make automata large.
EVIL = [
    r"(a+)+$",
    r"([a-zA-Z]+)*$x",
    r"(a|aa)+$",
    r"(a|a?)+z",
    r"(.*a){20}",
    r"(.*,){11}P",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(x+x+)+y",
    r"\s+$",
    r"(?:(?:\"|'|\]|\}|\\|\d|(?:nan|infinity|true|false)|\-|\+)+[)]*;?((?:\s|-|~|!|\{\}|\|\||\+)*.*(?:.*=.*)))",
    r".*.*=.*",
    r"(\w+\s*)+:",
    r"^(?:[a-z0-9!#$%&]+(?:\.[a-z0-9!#$%&]+)*)@x$",
    r"[ab]*a[ab]{200}c",
    r"((a{0,30}){15})b",
    r"[ab]*a[ab]{900}c",
]
MESSAGES = ["a" * 9_999 + "!", "ab" * 5_000, "a," * 5_000, " " * 9_999 + ".", "x" * 10_000, "=" * 10_000, "é" * 10_000]


@pytest.mark.parametrize("pattern", EVIL)
def test_no_pattern_hangs(pattern: str) -> None:
    """10,000 characters in well under the second that a backtracking engine exceeds with thirty."""
    validate("regex", pattern)
    triggers = TriggerSet([procedure("evil", pattern)])
    for message in MESSAGES:
        began = time.thread_time()
        triggers.decide(message)
        assert time.thread_time() - began < 1.0
