"""Text that can be stored and sent."""

from __future__ import annotations

import math
from typing import Any


def storable(text: str) -> str:
    """The text itself. Raises ValueError for characters that PostgreSQL or UTF-8 cannot hold."""
    if "\x00" in text:
        raise ValueError("contains a NUL character; remove it")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValueError("contains an unpaired surrogate; send well-formed Unicode") from exc
    return text


def made_storable_json(value: Any) -> Any:
    """JSON with every string made storable, and numbers that JSON does not have (NaN, infinity) as null."""
    match value:
        case str():
            return made_storable(value)
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {made_storable(key): made_storable_json(item) for key, item in value.items()}
        case list():
            return [made_storable_json(item) for item in value]
        case _:
            return value


def made_storable(text: str) -> str:
    """The text without what `storable` refuses: for text that we receive from a model or a document."""
    return text.replace("\x00", "").encode("utf-8", errors="replace").decode("utf-8")
