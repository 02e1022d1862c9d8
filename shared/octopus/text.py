"""Text that can be stored and sent."""

from __future__ import annotations


def storable(text: str) -> str:
    """The text itself. Raises ValueError for characters that PostgreSQL or UTF-8 cannot hold."""
    if "\x00" in text:
        raise ValueError("contains a NUL character; remove it")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValueError("contains an unpaired surrogate; send well-formed Unicode") from exc
    return text


def made_storable(text: str) -> str:
    """The text without what `storable` refuses: for text that we receive from a model or a document."""
    return text.replace("\x00", "").encode("utf-8", errors="replace").decode("utf-8")
