"""The skill library: what administrators do with procedures."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from octopus.embedding import Embedder
from octopus.errors import Conflict, Forbidden, NotFound
from octopus.identity import Principal, Role
from octopus.paging import Page, Place
from octopus.procedural.draft import ProcedureChanges, ProcedureDraft, embedded_texts, written_by
from octopus.procedural.ports import Filter, ProcedureStore
from octopus.procedural.trigger import validate
from octopus.procedural.types import Change, Procedure, ProcedureVersion

# What a version restores. Whose it is, who reviewed it and whether it is in use stay as they are.
_CONTENT = ("name", "description", "trigger_kind", "trigger_pattern", "example_phrases", "priority", "steps")

_WRITING: tuple[Change, ...] = ("created", "captured", "edited", "rolled back")


class ProcedureLibrary:
    """The procedures of the caller's tenant, for administrators. Every change is a version."""

    def __init__(self, store: ProcedureStore, embedder: Embedder, *, four_eyes: bool = False) -> None:
        """With `four_eyes`, whatever is written waits for another administrator's approval."""
        self._store = store
        self._embedder = embedder
        self._four_eyes = four_eyes

    async def create(self, caller: Principal, draft: ProcedureDraft) -> Procedure:
        """An administrator's own procedure is approved as it is written, unless four eyes are required.

        Raises `InvalidInput` for a trigger that cannot be used, `NotFound` for an unknown agent, `Conflict` for a
        name that the agent has already.
        """
        caller.require(Role.ADMIN)
        validate(draft.trigger_kind, draft.trigger_pattern)
        procedure = written_by(caller.user_id, draft, "pending" if self._four_eyes else "approved")
        vectors = await self._embedder.embed(embedded_texts(procedure))
        if not await self._store.create_procedure(caller.tenant_id, procedure, vectors, "created"):
            raise NotFound(f"There is no agent {draft.agent_id}.")
        return procedure

    async def page(
        self, caller: Principal, wanted: Filter, cursor: str | None = None, limit: int = 100
    ) -> Page[Procedure]:
        caller.require(Role.ADMIN)
        after = Place.of(cursor) if cursor else None
        found = await self._store.list_procedures(caller.tenant_id, wanted, after, limit + 1)
        if len(found) <= limit:
            return Page(found)
        last = found[limit - 1]
        return Page(found[:limit], Place(last.created_at, last.procedure_id).cursor())

    async def get(self, caller: Principal, procedure_id: UUID) -> Procedure:
        caller.require(Role.ADMIN)
        procedure = await self._store.get_procedure(caller.tenant_id, procedure_id)
        if procedure is None:
            raise NotFound(f"There is no procedure {procedure_id}.")
        return procedure

    async def update(self, caller: Principal, procedure_id: UUID, changes: ProcedureChanges) -> Procedure:
        """Raises `Conflict` when it is no longer at `changes.version`, or was changed at the same time."""
        current = await self._at_version(caller, procedure_id, changes.version)
        return await self._rewrite(caller, replace(current, **changes.values()), "edited")

    async def delete(self, caller: Principal, procedure_id: UUID) -> None:
        caller.require(Role.ADMIN)
        if not await self._store.delete_procedure(caller.tenant_id, procedure_id):
            raise NotFound(f"There is no procedure {procedure_id}.")

    async def approve(
        self, caller: Principal, procedure_id: UUID, note: str | None = None, version: int | None = None
    ) -> Procedure:
        """From now on it is matched.

        Raises `Conflict` when it is approved already or has changed, `Forbidden` for its author under four eyes.
        """
        current = await self._at_version(caller, procedure_id, version)
        if self._four_eyes and await self._author(caller, current) == caller.user_id:
            raise Forbidden("You wrote this version; another administrator has to approve it.")
        return await self._review(caller, current, "approved", note)

    async def reject(self, caller: Principal, procedure_id: UUID, reason: str, version: int | None = None) -> Procedure:
        """It is kept, with the reason, and never matched; its name is free again."""
        return await self._review(caller, await self._at_version(caller, procedure_id, version), "rejected", reason)

    async def versions(self, caller: Principal, procedure_id: UUID) -> list[ProcedureVersion]:
        await self.get(caller, procedure_id)
        return await self._store.list_versions(caller.tenant_id, procedure_id)

    async def rollback(self, caller: Principal, procedure_id: UUID, version: int) -> Procedure:
        """Write the content of an earlier version as a new one."""
        current = await self.get(caller, procedure_id)
        earlier = await self._store.get_version(caller.tenant_id, procedure_id, version)
        if earlier is None:
            raise NotFound(f"Procedure {procedure_id} has no version {version}.")
        content: dict[str, Any] = {name: getattr(earlier.procedure, name) for name in _CONTENT}
        return await self._rewrite(caller, replace(current, **content), "rolled back")

    async def _at_version(self, caller: Principal, procedure_id: UUID, version: int | None) -> Procedure:
        procedure = await self.get(caller, procedure_id)
        if version not in (None, procedure.version):
            raise _changed(procedure)
        return procedure

    async def _author(self, caller: Principal, procedure: Procedure) -> str:
        """Who wrote what the procedure says now; reviews change nothing of it."""
        versions = await self._store.list_versions(caller.tenant_id, procedure.procedure_id)
        return next(it.changed_by for it in versions if it.change in _WRITING and it.version <= procedure.version)

    async def _rewrite(self, caller: Principal, changed: Procedure, change: Change) -> Procedure:
        validate(changed.trigger_kind, changed.trigger_pattern)
        vectors = await self._embedder.embed(embedded_texts(changed))
        dated = replace(changed, updated_at=datetime.now(UTC))
        if self._four_eyes and changed.status == "approved":
            dated = replace(dated, status="pending", reviewed_by=None, reviewed_at=None, review_note=None)
        written = await self._store.update_procedure(caller.tenant_id, dated, vectors, change, caller.user_id)
        if written is None:
            raise _changed(changed)
        return written

    async def _review(
        self, caller: Principal, procedure: Procedure, verdict: Literal["approved", "rejected"], note: str | None
    ) -> Procedure:
        if procedure.status == verdict:
            raise Conflict(f"Procedure {procedure.procedure_id} is {verdict} already.")
        now = datetime.now(UTC)
        reviewed = replace(
            procedure,
            status=verdict,
            reviewed_by=caller.user_id,
            reviewed_at=now,
            review_note=note,
            updated_at=now,
        )
        written = await self._store.update_procedure(caller.tenant_id, reviewed, None, verdict, caller.user_id, note)
        if written is None:
            raise _changed(procedure)
        return written


def _changed(procedure: Procedure) -> Conflict:
    return Conflict(f"Procedure {procedure.procedure_id} has changed since you read it; read it again and decide anew.")
