"""Lists in pages: each page says where the next one begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

from octopus.errors import InvalidInput

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a list. `next_cursor` asks for the part after it; None at the end."""

    items: list[T]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a list ordered by time and id: rows inserted or deleted meanwhile do not move it."""

    at: datetime
    id: UUID

    def cursor(self) -> str:
        return base64.urlsafe_b64encode(f"{self.at.isoformat()} {self.id}".encode()).decode()

    @classmethod
    def of(cls, cursor: str) -> Place:
        """The place that `cursor` encodes. Raises `InvalidInput` for anything but a cursor."""
        try:
            at, _, row = base64.urlsafe_b64decode(cursor).decode().partition(" ")
            place = cls(datetime.fromisoformat(at), UUID(row))
        except (binascii.Error, ValueError) as exc:
            raise InvalidInput("cursor: send the next_cursor of an earlier page.", field="cursor") from exc
        if place.at.tzinfo is None:
            raise InvalidInput("cursor: send the next_cursor of an earlier page.", field="cursor")
        return place


def first_page(found: list[T], limit: int, place: Callable[[T], Place]) -> Page[T]:
    """The first `limit` of what was found, where one more than `limit` was asked for to see whether there is more."""
    shown = found[:limit]
    return Page(shown, place(shown[-1]).cursor() if len(found) > limit else None)
