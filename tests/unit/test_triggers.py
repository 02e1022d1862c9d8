"""Triggers: what they match, and what is refused with position and reason."""

from __future__ import annotations

import pytest
import re2

from octopus.errors import InvalidInput
from octopus.procedural.trigger import expression, options, validate
from octopus.procedural.types import TriggerKind


@pytest.mark.parametrize(
    ("kind", "pattern", "message"),
    [
        ("regex", "onboard.*vendor", "Please ONBOARD the vendor TechCorp"),
        ("regex", "create.*expense.*report", "create an expense report for Q1"),
        ("regex", r"größe\b", "Welche GRÖSSE ist die GRÖßE?"),
        ("glob", "onboard * vendor|add new vendor", "I want to add new vendor Acme"),
        ("glob", "onboard * vendor|add new vendor", "onboard a\nnew vendor"),
        ("glob", "ticket #??", "close Ticket #42 now"),
        ("glob", "what is 1+1 (now)", "What is 1+1 (now)?"),
        ("phrases", "reset my password\nforgot password", "I FORGOT  \n password"),
        ("phrases", "\n  パスワード  \n", "私のパスワードです"),
    ],
)
def test_a_trigger_finds_its_message(kind: TriggerKind, pattern: str, message: str) -> None:
    validate(kind, pattern)
    assert re2.search(expression(kind, pattern), message, options())


@pytest.mark.parametrize(
    ("kind", "pattern", "message"),
    [
        ("regex", "onboard.*vendor", "onboard\nvendor"),
        ("glob", "on * or", "upon a time or so"),
        ("glob", "a.c", "abc"),
        ("phrases", "port", "an important report"),
        ("phrases", "a|b", "a"),
    ],
)
def test_a_trigger_passes_by_other_messages(kind: TriggerKind, pattern: str, message: str) -> None:
    validate(kind, pattern)
    assert not re2.search(expression(kind, pattern), message, options())


@pytest.mark.parametrize(
    ("pattern", "position", "reason"),
    [
        ("foo(?=bar)", 3, "invalid perl operator: (?="),
        (r"(\w+) \1", 6, r"invalid escape sequence: \1"),
        ("a(b)(c", 4, "missing )"),
        ("a)b", 1, "unexpected )"),
        ("x[abc", 1, "missing ]"),
        ("é[z-a]", 2, "invalid character class range: z-a"),
        ("a**", 1, "bad repetition operator: **"),
        ("ab{2000}", 2, "invalid repetition size: {2000}"),
        ("*a", 0, "no argument for repetition operator: *"),
        (".{1000}.{1000}", 0, "instructions"),
        ("a" * 1_001, 1_000, "characters"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_its_place(pattern: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        validate("regex", pattern)
    assert refused.value.extra["field"] == "trigger_pattern"
    assert refused.value.extra["position"] == position
    assert reason in str(refused.value.extra["reason"])


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("regex", "a?"),
        ("regex", "x*|vendor"),
        ("regex", "|vendor"),
        ("regex", "^"),
        ("regex", "$"),
        ("regex", r"\b"),
        ("regex", r"\B|vendor"),
        ("regex", r"(?m)^\b|vendor"),
        ("glob", "*"),
        ("glob", "|"),
        ("phrases", "\n \n"),
    ],
)
def test_what_matches_nothing_at_all_is_refused(kind: TriggerKind, pattern: str) -> None:
    with pytest.raises(InvalidInput, match="matches the empty string"):
        validate(kind, pattern)


def test_a_long_list_of_phrases_is_allowed() -> None:
    validate("phrases", "\n".join(f"reset the password of system number {n}" for n in range(80)))
