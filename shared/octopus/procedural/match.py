"""Which procedure a message asks for, without any I/O.

1. The message is the name of a procedure.
2. A trigger matches. An agent's own procedure goes before a shared one, then the higher priority, then the longer
   match (its leftmost one), then the name in code point order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import re2

from octopus.procedural.trigger import expression, options
from octopus.procedural.types import Precedence, Procedure, ProcedureMatch
from octopus.recall import Score

# Triggers compiled together, in characters. A set of four times the size is refused by RE2 for lack of memory, and one
# of twice the size takes ten times as long for a message, because its automaton no longer fits its cache.
SHARD_CHARS = 100_000

_PRECEDENCE: tuple[Precedence, ...] = ("own", "priority", "length", "name")


@dataclass(frozen=True, slots=True)
class TriggerHit:
    """A trigger found in a message, at these characters of it."""

    procedure: Procedure
    start: int
    end: int


class TriggerSet:
    """The compiled triggers of everything that one agent may follow.

    RE2's filter looks for the literal parts of all triggers in one pass; only triggers whose parts are there are then
    run one by one.
    """

    def __init__(self, procedures: Iterable[Procedure]) -> None:
        self._procedures = list(procedures)
        self._by_name: dict[str, Procedure] = {}
        for procedure in sorted(self._procedures, key=lambda it: _order(TriggerHit(it, 0, 0))):
            self._by_name.setdefault(_spoken(procedure.name), procedure)
        self._shards = list(_compile(self._procedures))

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
        likely = [
            (procedures[index], triggers.re(index))
            for procedures, triggers in self._shards
            for index in triggers.Match(text, potential=True) or ()
        ]
        for _, equals in groupby(sorted(likely, key=_rank), key=_rank):
            found = ((procedure, trigger.search(text)) for procedure, trigger in equals)
            hits = [TriggerHit(procedure, *_characters(text, *at.span())) for procedure, at in found if at]
            yield from sorted(hits, key=_order)


def _compile(procedures: Sequence[Procedure]) -> Iterator[tuple[list[Procedure], Any]]:
    """Shards of at most `SHARD_CHARS`: their procedures, and an `re2.Filter` of their triggers in the same order."""
    compiled = options()
    shard: list[Procedure] = []
    triggers, size = re2.Filter(), 0
    for procedure in procedures:
        source = expression(procedure.trigger_kind, procedure.trigger_pattern)
        if shard and size + len(source) > SHARD_CHARS:
            triggers.Compile()
            yield shard, triggers
            shard, triggers, size = [], re2.Filter(), 0
        triggers.Add(source, compiled)
        shard.append(procedure)
        size += len(source)
    if shard:
        triggers.Compile()
        yield shard, triggers


def _rank(candidate: tuple[Procedure, Any]) -> tuple[bool, int]:
    procedure, _ = candidate
    return procedure.agent_id is None, -procedure.priority


def _order(hit: TriggerHit) -> tuple[bool, int, int, str]:
    """Sorts first what is to be followed. Names differ among the procedures of one owner, so there are no ties."""
    procedure = hit.procedure
    return procedure.agent_id is None, -procedure.priority, hit.start - hit.end, procedure.name


def _decided_by(best: Sequence[TriggerHit]) -> Precedence:
    if len(best) == 1:
        return "alone"
    first, second = map(_order, best)
    return next(rule for rule, a, b in zip(_PRECEDENCE, first, second, strict=True) if a != b)


def _characters(text: bytes, start: int, end: int) -> tuple[int, int]:
    return len(text[:start].decode()), len(text[:end].decode())


def _spoken(name: str) -> str:
    """A name as somebody would type it: ``reset_password`` and ``Reset password.`` are the same."""
    return " ".join(re.findall(r"[^\W_]+", name.casefold()))
