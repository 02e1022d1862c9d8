"""Text that a message must contain for a trigger to match.

Only a message with the right literals is worth a run of the trigger. What this module says may be too little, never
too much: whatever it does not understand needs no literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from octopus.procedural.trigger import alternatives
from octopus.procedural.types import TriggerKind

# Each clause is a choice of literals: a message that matches has at least one literal of every clause.
Clauses = list[frozenset[str]]

# Of a longer literal the beginning does. It bounds how many literals can end at one character of a message.
MAX_LITERAL = 32

_TOKEN = re.compile(
    r"""
      (?P<text>       [^\\.+*?()|\[\]{}^$]+ | \\\W )
    | (?P<space>      \\s\+? (?![*+?{]) )
    | (?P<nothing>    [\^$] | \\[bBAz] | \(\?[a-zA-Z-]+\) )
    | (?P<open>       \( (?: \? (?: P?<\w+> | [a-zA-Z-]*: ) )? )
    | (?P<close>      \) )
    | (?P<or>         \| )
    | (?P<repeat>     (?: [*+?] | \{\d+(?:,\d*)?\} ) \?? )
    | (?P<character>  [.\]{}] | \\[dDsSwWnrtfv] | \\[pP](?:\w|\{\^?\w+\})
                    | \[\^?\]? (?: \[:\^?\w+:\] | \\. | [^\]\\] )* \] )
    """,
    re.VERBOSE | re.DOTALL,
)


def folded(text: str) -> str:
    """Text as literals are compared: without regard to case, a run of white space as one space."""
    return re.sub(r"\s+", " ", text).casefold()


def required(kind: TriggerKind, pattern: str) -> Clauses:
    """The literals, folded, that a message needs for a trigger that `validate` takes. None: it may need nothing."""
    if kind == "regex":
        return _of_regex(pattern)
    wild = re.compile(r"[*?]" if kind == "glob" else r"\n")
    return _either([_literals(wild.split(text)) for text in alternatives(kind, pattern)])


def _of_regex(pattern: str) -> Clauses:
    tokens = list(_TOKEN.finditer(pattern))
    if sum(len(token[0]) for token in tokens) < len(pattern):
        return []
    return _branches(iter(tokens))


def _branches(tokens: Iterator[re.Match[str]]) -> Clauses:
    """The clauses of what stands before the group's end."""
    branches: list[list[str | Clauses]] = [[]]
    for token in tokens:
        branch = branches[-1]
        match token.lastgroup:
            case "text":
                branch.append(token[0].removeprefix("\\"))
            case "space":
                branch.append(" ")
            case "character":
                branch.append([])
            case "open":
                branch.append(_branches(tokens))
            case "or":
                branches.append([])
            case "close":
                break
            case "repeat":
                _repeat(branch, token[0])
    return _either([_joined(branch) for branch in branches])


def _repeat(branch: list[str | Clauses], quantifier: str) -> None:
    """Let the last character or group be there any number of times."""
    if branch and not quantifier.startswith("+"):
        last = branch.pop()
        if isinstance(last, str):
            branch.append(last[:-1])
    branch.append([])


def _joined(branch: list[str | Clauses]) -> Clauses:
    """What stands one after the other: text that is adjacent is one literal."""
    clauses: Clauses = []
    text = ""
    for part in [*branch, []]:
        if isinstance(part, str):
            text += part
        else:
            clauses += [*_literals([text]), *part]
            text = ""
    return clauses


def _literals(texts: Iterable[str]) -> Clauses:
    return [frozenset([folded(text)[:MAX_LITERAL]]) for text in texts if text]


def _either(branches: list[Clauses]) -> Clauses:
    """Of several branches each gives the clause that fewest messages will meet, as far as length tells."""
    if len(branches) == 1:
        return branches[0]
    if not all(branches):
        return []
    rarest = [max(clauses, key=lambda clause: min(map(len, clause))) for clauses in branches]
    return [frozenset(chain.from_iterable(rarest))]
