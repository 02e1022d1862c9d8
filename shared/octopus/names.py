"""Names of persons, learned where somebody introduces, addresses or titles one."""

from __future__ import annotations

from collections.abc import Iterator

import re2

_PARTICLE = r"(?: (?:van|von|de|der|den|del|della|da|di|la|le|bin|al|zu))*"
_WORD = r"\p{Lu}[\pL'’-]+"
_NAME = rf"{_WORD}(?: \p{{Lu}}\.)?(?:{_PARTICLE} {_WORD}){{0,3}}"
_FULL_NAME = rf"{_WORD}(?: \p{{Lu}}\.)?(?:{_PARTICLE} {_WORD}){{1,3}}"
_RELATION = (
    r"(?:wife|husband|partner|fiancée?|boyfriend|girlfriend|son|daughter|brother|sister|mother|father|mom|mum|dad"
    r"|uncle|aunt|cousin|nephew|niece|boss|manager|colleague|coworker|assistant|friend|neighbou?r|landlord|roommate"
    r"|doctor|dentist|therapist|lawyer|teacher|client|patient|frau|mann|sohn|tochter|chef|chefin)"
)
_REVEALING = tuple(
    re2.compile(pattern)
    for pattern in (
        rf"(?i:\b(?:my|his|her|their|the|full) name(?: is|'s|’s|:)|\bname:|\b(?:call me|called|named)) ({_NAME})",
        rf"(?i:\b(?:mein name ist|ich heiße|ich heisse|je m['’]appelle|me llamo|mi nombre es|mi chiamo)) ({_NAME})",
        rf"(?i:\b(?:i am|i['’]m|this is|ich bin|je suis|soy|sono)) ({_FULL_NAME})",
        rf"(?i:\b(?:i am|i['’]m|this is)) ({_NAME})(?: (?:from|here|speaking|again)\b|, (?:your|the|a)\b)",
        rf"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Professor|Herr|Frau|Mme|Madame|Monsieur|Señora?|Sra?|Signora?)\.? ({_NAME})",
        rf"(?i:\b(?:my|our|meine?|unser) {_RELATION}(?: is called| is named|[’']s name is| heißt| is|,)?) ({_NAME})",
        rf"(?:^|[\n.!?] ?)(?i:dear|hi|hello|hey|hallo|lieber?|bonjour|hola|ciao|welcome(?: back)?),? ({_NAME})\s*[,!.\n]",
        rf"(?i:\b(?:thanks|thank you|danke|merci|gracias)),? ({_NAME})[,!.\n]",
        rf"(?i:\b(?:regards|wishes|sincerely|cheers|best|love|grüße|grüßen)),? ?\n+ ?({_NAME})\s*(?:\n|$)",
    )
)
# Capitalised words that are greeted, titled or introduced without being anybody's name.
_NOT_NAMES = frozenset(
    """Aber All American Assistant Australian Because British But Canadian Chinese Customer Dear Dutch Everyone English
    European Everybody Folks French Friday German God Good Great Guys Happy He Hello Hi How However I If In Indian Italian
    Japanese Madam Maybe Monday My No Not Octopus Ok Okay Please Polish Saturday She Sir So Sorry Spanish Sunday Support
    Sure Swiss Team Thanks That The There They This Thursday Tuesday We Wednesday What When Where Why World Yes You
    Your""".split()
)
_SHORTEST_PART = 3  # letters of a part of a name that is replaced by itself


def names_in(text: str) -> set[str]:
    """The names that the text reveals, whole, and their parts of three letters or more."""
    names: set[str] = set()
    for pattern in _REVEALING:
        for match in pattern.finditer(text):
            words = match.group(1).rstrip("'’-").split()
            while words and words[-1] in _NOT_NAMES:
                words.pop()
            if words and words[0] not in _NOT_NAMES:
                names.add(" ".join(words))
                names.update(w for w in words if w[0].isupper() and len(w) >= _SHORTEST_PART and w not in _NOT_NAMES)
    return names


def occurrences(text: str, names: set[str]) -> Iterator[tuple[int, int]]:
    """Where one of the names stands as words of its own; the longest counts."""
    if not names:
        return
    alternatives = sorted(names, key=len, reverse=True)
    for match in re2.finditer("|".join(map(re2.escape, alternatives)), text):
        before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        if not before.isalnum() and not after.isalnum():
            yield match.start(), match.end()
