"""Which procedure a message asks for, without any I/O.

1. The message is the name of a procedure.
2. A trigger matches. An agent's own procedure goes before a shared one, then the higher priority, then the longer
   match (its leftmost one), then the name in code point order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import Any

import re2
from ahocorasick_rs import AhoCorasick

from octopus.procedural.literals import folded, required
from octopus.procedural.trigger import expression, options
from octopus.procedural.types import Precedence, Procedure, ProcedureMatch
from octopus.recall import Score

_OPTIONS = options()
_PRECEDENCE: tuple[Precedence, ...] = ("own", "priority", "length", "name")


@dataclass(frozen=True, slots=True)
class TriggerHit:
    """A trigger found in a message, at these characters of it."""

    procedure: Procedure
    start: int
    end: int


class TriggerSet:
    """The triggers of everything that one agent may follow.

    One pass over the message finds the literals of all triggers; only a trigger that has what it needs is then run by
    itself, and compiled when that happens first.
    """

    def __init__(self, procedures: Iterable[Procedure]) -> None:
        self._procedures = sorted(procedures, key=_order)
        self._by_name: dict[str, Procedure] = {}
        for procedure in self._procedures:
            self._by_name.setdefault(_spoken(procedure.name), procedure)
        self._compiled: dict[int, Any] = {}
        self._needs: list[int] = []  # of each procedure, how many clauses
        self._owners: list[int] = []  # of each clause, whose it is
        clauses: dict[str, list[int]] = {}  # of each literal
        for index, procedure in enumerate(self._procedures):
            needed = required(procedure.trigger_kind, procedure.trigger_pattern)
            self._needs.append(len(needed))
            for clause in needed:
                for literal in clause:
                    clauses.setdefault(literal, []).append(len(self._owners))
                self._owners.append(index)
        self._needless = [index for index, needed in enumerate(self._needs) if not needed]
        self._clauses = list(clauses.values())
        self._literals = AhoCorasick(clauses, store_patterns=False)

    def __len__(self) -> int:
        return len(self._procedures)

    def decide(self, message: str) -> ProcedureMatch | None:
        """The one procedure that name or trigger choose."""
        if (named := self.named(message)) is not None:
            return ProcedureMatch(named, "name", Score(rank=1))
        best = list(islice(self.hits(message), 2))
        if not best:
            return None
        return ProcedureMatch(best[0].procedure, "pattern", Score(rank=1), _decided_by(best))

    def named(self, message: str) -> Procedure | None:
        """The procedure whose name the message is; case, underscores and punctuation aside."""
        return self._by_name.get(_spoken(message))

    def hits(self, message: str) -> Iterator[TriggerHit]:
        """Every trigger that the message contains, the one to follow first; run as far as they are asked for."""
        text = message.encode()
        for _, equals in groupby(self._likely(message), key=lambda index: _rank(self._procedures[index])):
            found = ((self._procedures[index], self._trigger(index).search(text)) for index in equals)
            hits = [TriggerHit(procedure, *_characters(text, *at.span())) for procedure, at in found if at]
            yield from sorted(hits, key=_precedence)

    def _likely(self, message: str) -> list[int]:
        """Procedures for whose triggers the message has all the literals, in order."""
        found = {literal for literal, _, _ in self._literals.find_matches_as_indexes(folded(message), overlapping=True)}
        met = Counter(self._owners[clause] for clause in {c for literal in found for c in self._clauses[literal]})
        return sorted(chain(self._needless, (index for index, n in met.items() if n == self._needs[index])))

    def _trigger(self, index: int) -> Any:
        if index not in self._compiled:
            procedure = self._procedures[index]
            source = expression(procedure.trigger_kind, procedure.trigger_pattern)
            self._compiled[index] = re2.compile(source, _OPTIONS)
        return self._compiled[index]


def _rank(procedure: Procedure) -> tuple[bool, int]:
    return procedure.agent_id is None, -procedure.priority


def _order(procedure: Procedure) -> tuple[bool, int, str]:
    return *_rank(procedure), procedure.name


def _precedence(hit: TriggerHit) -> tuple[bool, int, int, str]:
    """Sorts first what is to be followed. Names differ among the procedures of one owner, so there are no ties."""
    return *_rank(hit.procedure), hit.start - hit.end, hit.procedure.name


def _decided_by(best: Sequence[TriggerHit]) -> Precedence:
    if len(best) == 1:
        return "alone"
    first, second = map(_precedence, best)
    return next(rule for rule, a, b in zip(_PRECEDENCE, first, second, strict=True) if a != b)


def _characters(text: bytes, start: int, end: int) -> tuple[int, int]:
    return len(text[:start].decode()), len(text[:end].decode())


def _spoken(name: str) -> str:
    """A name as somebody would type it: ``reset_password`` and ``Reset password.`` are the same."""
    return " ".join(re.findall(r"[^\W_]+", name.casefold()))
