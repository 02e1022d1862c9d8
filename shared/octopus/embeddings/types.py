"""What a change of the embedding model is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

MemoryName = Literal["documents", "episodes", "procedures"]


@dataclass(frozen=True, slots=True)
class Item:
    """A document, an episode or a procedure that has something left to do. `stamp` moves when it gets another text."""

    tenant_id: str
    memory: MemoryName
    item_id: UUID
    stamp: int


@dataclass(frozen=True, slots=True)
class Space:
    """The vectors of one model that are being made (`coming`) or dropped."""

    space_id: int
    model: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a change is: items by memory, of `total` when it was begun, that are `left` now.

    `dropping`: items of models that were left (or cancelled) whose vectors are still there.
    """

    current: str | None
    coming: str | None
    total: Mapping[MemoryName, int]
    left: Mapping[MemoryName, int]
    dropping: Mapping[str, int]
