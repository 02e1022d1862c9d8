"""Names of persons: known given names, and whatever somebody is introduced, addressed or titled by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import re2

_PARTICLE = r"(?: (?:van|von|de|der|den|del|della|da|di|la|le|bin|al|zu))*"
_WORD = r"\p{Lu}[\pL'’-]{1,40}"
_NAME = rf"{_WORD}(?: \p{{Lu}}\.)?(?:{_PARTICLE} {_WORD}){{0,3}}"
_FULL_NAME = rf"{_WORD}(?: \p{{Lu}}\.)?(?:{_PARTICLE} {_WORD}){{1,3}}"
_RELATION = (
    r"(?:wife|husband|partner|fiancée?|boyfriend|girlfriend|son|daughter|brother|sister|mother|father|mom|mum|dad"
    r"|uncle|aunt|cousin|nephew|niece|boss|manager|colleague|coworker|assistant|friend|neighbou?r|landlord|roommate"
    r"|doctor|dentist|therapist|lawyer|teacher|client|patient|frau|mann|sohn|tochter|chef|chefin)"
)
_GREETING = r"(?:dear|hi|hello|hey|hallo|lieber?|bonjour|hola|ciao|welcome(?: back)?)"
_REVEALING = (
    rf"(?i:\b(?:my|his|her|their|the|full) name(?: is|'s|’s|:)|\bname:|\b(?:call me|called|named)) ({_NAME})",
    rf"(?i:\b(?:mein name ist|ich heiße|ich heisse|je m['’]appelle|me llamo|mi nombre es|mi chiamo)) ({_NAME})",
    rf"(?i:\b(?:i am|i['’]m|this is|ich bin|je suis|soy|sono)) ({_FULL_NAME})",
    rf"(?i:\b(?:i am|i['’]m|this is)) ({_NAME})(?: (?:from|here|speaking|again)\b|, (?:your|the|a)\b)",
    r"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Professor|Herr|Frau|Mme|Madame|Monsieur|Señora?|Sra?|Signora?)"
    rf"\.? ({_NAME})",
    rf"(?i:\b(?:my|our|meine?|unser) {_RELATION}(?: is called| is named|[’']s name is| heißt| is|,)?) ({_NAME})",
    rf"(?:^|[\n.!?] ?)(?i:{_GREETING}),? ({_NAME})\s*[,!.\n]",
    rf"(?i:\b(?:thanks|thank you|danke|merci|gracias)),? ({_NAME})[,!.\n]",
    rf"(?i:\b(?:regards|wishes|sincerely|cheers|best|love|grüße|grüßen)),? ?\n+ ?({_NAME})\s*(?:\n|$)",
)
_PLACE_OR_NOUN = re2.compile(r"(?:^|[.!?:\n]\s*|(?i:\b(?:in|at|to|from|near|via|of|on|by|the|a|an)) )[\"'“(]?$")
_SHORTEST_PART = 3  # letters of a part of a name that is replaced by itself


class _Known(NamedTuple):
    """Words in lower case: given names, those of them that are also common words, and words that are nobody's name."""

    names: frozenset[str]
    common: frozenset[str]
    never: frozenset[str]


@cache
def _known() -> _Known:
    """`names.txt`: a word per line, with ``?`` if it is a common English word as well and ``!`` if it is no name.

    20,900 given names of 66 languages in Latin script from Faker (MIT License); the marks are from Webster's second
    edition and ours.
    """
    lines = files(__package__).joinpath("names.txt").read_text("utf-8").split()
    names, common, never = (
        frozenset(w.rstrip("?!") for w in lines if (w[-1:] if w[-1] in "?!" else "") == m) for m in ("", "?", "!")
    )
    return _Known(names | common, common, never)


@cache
def _patterns() -> tuple[Any, tuple[Any, ...]]:
    """A capitalised name, and what reveals one. Compiled when first needed: it takes up to a second, which a function
    that redacts nothing must not spend when it starts."""
    return re2.compile(_NAME), tuple(map(re2.compile, _REVEALING))


def names_in(texts: Sequence[str]) -> set[str]:
    """The names that the texts of one conversation reveal, whole, and their parts of three letters or more.

    A part that also occurs in lower case (green, may) is not replaced by itself.
    """
    names = {name for text in texts for name in _revealed(text)}
    parts = {word for name in names for word in name.split() if len(word) >= _SHORTEST_PART and word[0].isupper()}
    lower = {word for text in texts for word in re2.findall(r"\b\p{Ll}[\pL'’-]+", text)}
    never = _known().never
    return names | {part for part in parts if part.lower() not in lower and part.lower() not in never}


def occurrences(text: str, names: set[str]) -> Iterator[tuple[int, int]]:
    """Where one of the names stands as words of its own; the longest counts."""
    if not names:
        return
    alternatives = sorted(names, key=len, reverse=True)
    for match in re2.finditer("|".join(map(re2.escape, alternatives)), text):
        before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        if not before.isalnum() and not after.isalnum():
            yield match.start(), match.end()


def _revealed(text: str) -> Iterator[str]:
    never = _known().never
    capitalised, revealing = _patterns()
    for pattern in revealing:
        for match in pattern.finditer(text):
            words = match.group(1).rstrip("'’-").split()
            while words and words[-1].lower() in never:
                words.pop()
            if words and words[0].lower() not in never:
                yield " ".join(words)
    for match in capitalised.finditer(text):
        if text[max(0, match.start() - 1) : match.start()].isalnum():
            continue  # a capital within a word
        words = match.group().split()
        start = next((n for n in range(len(words)) if _is_given(words, n, text[: match.start()])), None)
        if start is not None:
            # Among capitals only, a surname is the most that can be told from what follows.
            end = start + 2 if match.group().isupper() else len(words)
            yield " ".join(words[start:end]).rstrip("'’-")


def _is_given(words: Sequence[str], n: int, before: str) -> bool:
    """Whether a given name stands at `words[n]`. One that is a common word as well needs a surname, or a place within
    the sentence where a common word would not be capitalised."""
    names, common, never = _known()
    word = words[n].lower().removesuffix("'s").removesuffix("’s")
    if word in never or not names.intersection((word, word.partition("-")[0])):
        return False
    if word not in common:
        return True
    has_surname = len(words) > n + 1 and words[n + 1].lower() not in never and not words[n + 1].isupper()
    return has_surname or (n == 0 and _PLACE_OR_NOUN.search(before[-20:]) is None)
