"""Triggers: what a message must contain for a procedure to be followed.

All three kinds become one RE2 expression, matched anywhere in the message and without regard to case:

- ``regex``: RE2 syntax as it stands (no look-around, no back-references: they are what can hang).
- ``glob``: ``*`` any text, ``?`` one character, ``|`` between alternatives, the rest literal; at word boundaries.
- ``phrases``: one phrase per line, any of them; a space stands for any white space; at word boundaries.
"""

from __future__ import annotations

import re
from typing import Any

import re2

from octopus.errors import InvalidInput
from octopus.procedural.types import TriggerKind

MAX_CHARS: dict[TriggerKind, int] = {"regex": 1_000, "glob": 1_000, "phrases": 4_000}

# RE2 takes time proportional to text × program when a pattern defeats its automaton. The worst pattern of this size
# that we found takes 80 ms on 10,000 characters; the largest useful one that we found has 300 instructions.
MAX_PROGRAM = 1_000

# A trigger matches nothing where it stands at an edge of each sort; if it can match nothing at all, it does here.
_EDGES = ("", "a", " ", "\n", "aa", "  ", "a a", "\n\n")


def options() -> Any:
    """How every trigger is compiled. `never_capture` and `longest_match` leave the work to the automaton."""
    chosen = re2.Options()
    chosen.case_sensitive = False
    chosen.longest_match = True
    chosen.never_capture = True
    chosen.log_errors = False
    chosen.max_mem = 1 << 20  # bytes, per trigger
    return chosen


def expression(kind: TriggerKind, pattern: str) -> str:
    """The trigger in RE2 syntax."""
    if kind == "regex":
        return pattern
    piece = _glob if kind == "glob" else _phrase
    return "|".join(_whole_words(text, piece(text)) for text in alternatives(kind, pattern))


def alternatives(kind: TriggerKind, pattern: str) -> list[str]:
    """The globs or the phrases, any of which will do."""
    return [text for part in pattern.split("|" if kind == "glob" else "\n") if (text := part.strip())]


def validate(kind: TriggerKind, pattern: str) -> None:
    """Raise `InvalidInput`, with the position and the reason, for a trigger that cannot be used."""
    if len(pattern) > MAX_CHARS[kind]:
        raise _refusal(f"it has {len(pattern)} characters, more than {MAX_CHARS[kind]}", MAX_CHARS[kind])
    source = expression(kind, pattern)
    error = _compile_error(source)
    if error is not None:
        raise _refusal(error, _position(source, error))
    compiled = re2.compile(source, options())
    if any(match.start() == match.end() for edge in _EDGES for match in compiled.finditer(edge)):
        raise _refusal("it matches the empty string, and so every message", 0)
    if kind != "phrases" and compiled.programsize > MAX_PROGRAM:
        raise _refusal(
            f"it compiles to {compiled.programsize} instructions, more than {MAX_PROGRAM}; "
            "use fewer or smaller counted repetitions",
            0,
        )


def _glob(text: str) -> str:
    wild = {"*": "(?s:.*)", "?": "(?s:.)"}
    return "".join(wild.get(char) or re2.escape(char) for char in text)


def _phrase(text: str) -> str:
    return r"\s+".join(re2.escape(word) for word in text.split())


def _whole_words(text: str, source: str) -> str:
    """RE2 knows the word boundaries of ASCII only; other scripts match without them."""
    start, end = (r"\b" if re.match(r"\w", char, re.ASCII) else "" for char in (text[0], text[-1]))
    return f"{start}(?:{source}){end}"


def _compile_error(source: str) -> str | None:
    try:
        re2.compile(source, options())
    except re2.error as error:
        return error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
    return None


def _position(source: str, error: str) -> int:
    """Where RE2 gave up: it names the fault, not its place, so look for the shortest beginning with that fault."""
    reason, _, fragment = error.partition(": ")
    if not fragment:
        return 0
    end = len(source)
    while end > 1 and (_compile_error(source[: end - 1]) or "").startswith(f"{reason}: "):
        end -= 1
    if reason.endswith(")"):  # "missing )" and "unexpected )" name the whole expression
        return end - 1
    return max(0, end - len((_compile_error(source[:end]) or error).partition(": ")[2]))


def _refusal(reason: str, position: int) -> InvalidInput:
    return InvalidInput(
        f"trigger_pattern: at position {position}: {reason}.",
        field="trigger_pattern",
        position=position,
        reason=reason,
    )
