"""Export and erasure in PostgreSQL."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from octopus.cloud.database import Database
from octopus.cloud.queries import load_queries
from octopus.episodic.privacy import Erasure, ExportPlace, Record
from octopus.paging import Place

_SQL = load_queries(__package__, "privacy.sql")
_SESSIONS, _RECORDS = 20, 200  # per round trip


class PostgresPrivacyStore:
    """Implements `octopus.episodic.privacy.PrivacyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def erase(self, tenant_id: str, user_id: str, agent_id: UUID | None, erased_by: str) -> Erasure:
        whose: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "agent_id": agent_id}
        async with self._database.transaction(tenant_id) as tx:
            # The locks come first: what is being written into a session is seen, and goes, with the session.
            sessions = [row["conversation_id"] for row in await tx.all(_SQL["lock_sessions"], whose)]
            whose["sessions"] = sessions
            messages = await tx.one(_SQL["count_messages"], whose)
            assert messages is not None  # a count is a row
            counts = {
                "conversations": len(sessions),
                "messages": messages["messages"],
                "episodes": await tx.run(_SQL["erase_episodes"], whose),
                "procedure_candidates": await tx.run(_SQL["erase_candidates"], whose),
            }
            await tx.run(_SQL["unlink_procedures"], whose)
            await tx.run(_SQL["erase_sessions"], whose)
            audit = {**whose, "erasure_id": uuid4(), "erased_by": erased_by, "counts": Jsonb(counts)}
            erasure = await tx.one(_SQL["record_erasure"], audit)
        assert erasure is not None  # insert … returning yields its row
        return Erasure(**erasure)

    async def records_after(
        self, tenant_id: str, user_id: str, agent_id: UUID | None, after: ExportPlace | None
    ) -> list[Record]:
        whose: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id}
        begin = after.session if after else None
        records: list[Record] = []
        async with self._database.transaction(tenant_id) as tx:
            window = {
                **whose,
                "agent_id": agent_id,
                "at": begin.at if begin else None,
                "id": begin.id if begin else None,
                "limit": _SESSIONS,
            }
            for session in await tx.all(_SQL["next_sessions"], window):
                place = Place(session["started_at"], session["conversation_id"])
                part, ordinal = (after.part, after.ordinal) if after and place == begin else (-1, 0)
                part_of = {**whose, "conversation_id": place.id, "part": part, "ordinal": ordinal, "limit": _RECORDS}
                records += [
                    Record(ExportPlace(place, row["part"], row["ordinal"]), row["record"])
                    for row in await tx.all(_SQL["session_records"], part_of)
                ]
                if len(records) >= _RECORDS:
                    break
        return records
