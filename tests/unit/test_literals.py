"""The literals that a trigger needs: enough of them to pass it by, never one that a match could be without."""

from __future__ import annotations

import sys
from itertools import product

import pytest
import re2
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from octopus.errors import InvalidInput
from octopus.procedural.literals import folded, required
from octopus.procedural.match import TriggerSet
from octopus.procedural.trigger import expression, options, validate
from octopus.procedural.types import TriggerKind
from tests.support.procedures import procedure


@pytest.mark.parametrize(
    ("kind", "pattern", "clauses"),
    [
        ("regex", "Onboard.*vendor", [{"onboard"}, {"vendor"}]),
        ("regex", r"\breset\s+my (password|pass phrase)$", [{"reset my "}, {"password", "pass phrase"}]),
        ("regex", "how (do|can) i (?:really )?pay+ it?", [{"how "}, {"do", "can"}, {" i "}, {"pay"}, {" i"}]),
        ("regex", "pay (?:an? )*invoice|buy.*stocks", [{"invoice", "stocks"}]),
        ("regex", r"[a-z[:digit:]\]]x{2,3}[^]]y\.z\*", [{"y.z*"}]),
        ("regex", r"(?i)(?P<what>größe)\?", [{"grösse"}, {"?"}]),
        ("regex", r"a|\d", []),
        ("regex", r"\Qa.b\E", []),
        ("regex", r"\x41", []),
        ("regex", r"\p{Greek}\n\bab", [{"ab"}]),
        ("regex", "(((a)))b", [{"a"}, {"b"}]),
        ("glob", "onboard * vendor", [{"onboard "}, {" vendor"}]),
        ("glob", "ticket #??|add (new) vendor", [{"ticket #", "add (new) vendor"}]),
        ("phrases", "reset  my password?\n forgot password", [{"reset my password?", "forgot password"}]),
        ("phrases", "a" * 100, [{"a" * 32}]),
    ],
)
def test_what_a_trigger_needs(kind: TriggerKind, pattern: str, clauses: list[set[str]]) -> None:
    validate(kind, pattern)
    assert required(kind, pattern) == clauses


ATOMS = [
    *"aaabbb  kßé\n", "ab", "a b", ".", "[ab]", "[^a]", "[]b]", r"[\]a]", "[[:alpha:]]", r"\s", r"\s+", r"\s*", r"\d",
    r"\.", r"\ ", r"\b", "^", "$", "{", "a{,2}", r"\p{Greek}", r"\x61", r"\n", "(?i)", "(?s:.)", "Σ", "ſ", "\u2003",
]  # fmt: skip
QUANTIFIERS = ["", "", "", "", "?", "*", "+", "+?", "{0}", "{2}", "{1,2}?"]
regexes = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        st.tuples(st.sampled_from(["(", "(?:", "(?P<n>", "(?i:"]), inner).map(lambda it: f"{it[0]}{it[1]})"),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map("".join),
    ),
    max_leaves=8,
)
globs = st.text("ab *?|.\n", max_size=12)
triggers = st.one_of(
    regexes.map(lambda it: ("regex", it)), globs.map(lambda it: ("glob", it)), globs.map(lambda it: ("phrases", it))
)
MESSAGES = [
    *("".join(chars) for n in range(1, 5) for chars in product("ab ", repeat=n)),
    *(
        "KB",
        "É\té",
        "STRASSE",
        "Straße",
        "ẞ",
        "σς",
        "S s",
        "\u212a",
        "a\nb",
        "a \t\n b",
        "a\u2003b",
        "a.b{a,2}",
        "*?|1",
    ),
]


@settings(max_examples=400, derandomize=True, deadline=None)
@given(triggers)
def test_what_is_found_is_what_the_trigger_finds_by_itself(drawn: tuple[TriggerKind, str]) -> None:
    kind, pattern = drawn
    try:
        validate(kind, pattern)
    except InvalidInput:
        assume(False)
    alone = re2.compile(expression(kind, pattern), options())
    found_by = TriggerSet([procedure("it", pattern, trigger_kind=kind)])
    for message in MESSAGES:
        expected = [at.span() for at in [alone.search(message)] if at]
        assert [(hit.start, hit.end) for hit in found_by.hits(message)] == expected


def test_no_two_characters_are_one_to_re2_and_different_when_folded() -> None:
    """RE2 folds by its own tables, and literals by Python's."""
    cased = [c for c in map(chr, range(sys.maxunicode + 1)) if len({c, c.lower(), c.upper(), c.casefold()}) > 1]
    text = "".join(cased)
    for char in cased:
        same = re2.findall(char, text, options())
        assert char in same
        assert {folded(it) for it in same} == {folded(char)}
