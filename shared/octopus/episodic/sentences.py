"""Where sentences end."""

from __future__ import annotations

import re

# A full stop inside a number, an abbreviation of one letter or an address does not end a sentence.
_END = re.compile(r"(?<=[.!?…。！？])(?<!\b\w\.)[\"'”’)\]]*\s+(?=\S)|\n+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order, without the blanks between them."""
    return [sentence.strip() for sentence in _END.split(text) if sentence.strip()]
