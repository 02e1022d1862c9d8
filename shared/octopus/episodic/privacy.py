"""A user's right to their memory: to have all of it, and to have it gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from octopus.errors import InvalidInput
from octopus.identity import Principal, Role
from octopus.paging import Place

# API Gateway takes 10 MB from Lambda, and Lambda 6 MB from a function, as escaped JSON.
PAGE_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Erasure:
    """The audit row of an erasure: no content. `agent_id` None means with every agent."""

    erasure_id: UUID
    user_id: str
    agent_id: UUID | None
    erased_by: str
    counts: Mapping[str, int]
    erased_at: datetime


@dataclass(frozen=True, slots=True)
class ExportPlace:
    """The last record of an export so far: its session, the part of the session's records, its number in the part."""

    session: Place
    part: int
    ordinal: int

    def cursor(self) -> str:
        return f"{self.session.cursor()}.{self.part}.{self.ordinal}"

    @classmethod
    def of(cls, cursor: str) -> ExportPlace:
        """The place that `cursor` encodes. Raises `InvalidInput` for anything but a cursor."""
        session, *numbers = cursor.split(".")
        if len(numbers) != 2 or not all(n.isascii() and n.isdecimal() and len(n) <= 9 for n in numbers):
            raise InvalidInput("cursor: send the cursor of the last line of the page before.", field="cursor")
        return cls(Place.of(session), *map(int, numbers))


@dataclass(frozen=True, slots=True)
class Record:
    """One line of an export and its place."""

    place: ExportPlace
    content: Mapping[str, Any]


class PrivacyStore(Protocol):
    """Everything that is kept of a user, across all memories. Every method is atomic."""

    async def erase(self, tenant_id: str, user_id: str, agent_id: UUID | None, erased_by: str) -> Erasure: ...

    async def records_after(
        self, tenant_id: str, user_id: str, agent_id: UUID | None, after: ExportPlace | None
    ) -> list[Record]:
        """Some records in the order of an export; empty at its end."""
        ...


class Privacy:
    """Export and erasure. A user may have their own memory; erasing and others' memory is for administrators."""

    def __init__(self, store: PrivacyStore) -> None:
        self._store = store

    async def erase(self, caller: Principal, user_id: str, agent_id: UUID | None) -> Erasure:
        """Remove sessions with all that was said and derived in them, at once and for good, in one transaction.

        A turn or an end-session event that is under way finds its session gone and writes nothing. Procedures that an
        administrator has approved stay, without their source. Raises `Forbidden`.
        """
        caller.require(Role.ADMIN)
        return await self._store.erase(caller.tenant_id, user_id, agent_id, caller.user_id)

    async def export(self, caller: Principal, user_id: str, agent_id: UUID | None, cursor: str | None) -> str:
        """JSON lines: every session with its messages, turns, tool calls, feedback, episode, facts, passages and
        captured procedures. A last line of type `next` carries the cursor of the next page, if there is one.

        Raises `Forbidden` for somebody else's memory without the role.
        """
        caller.reach(user_id)
        after = ExportPlace.of(cursor) if cursor else None
        lines: list[str] = []
        size = 0
        while records := await self._store.records_after(caller.tenant_id, user_id, agent_id, after):
            for record in records:
                line = json.dumps(record.content, ensure_ascii=False)
                if lines and size + len(line.encode()) > PAGE_BYTES:
                    assert after is not None  # the place of the last line
                    return "\n".join([*lines, json.dumps({"type": "next", "cursor": after.cursor()})]) + "\n"
                lines.append(line)
                size += len(line.encode())
                after = record.place
        return "".join(f"{line}\n" for line in lines)
