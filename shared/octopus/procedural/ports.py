"""What procedural memory needs from the outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from octopus.paging import Place
from octopus.procedural.types import (
    Capture,
    Change,
    Procedure,
    ProcedureStatistics,
    ProcedureStatus,
    ProcedureVersion,
)
from octopus.relevance import Vector

# What the agent may follow; that and what it might one day; everything, rejected ones included.
Among = Literal["followed", "drafts", "all"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which procedures to list. None does not filter; `agent_id` also lists the shared ones, which it follows too."""

    agent_id: UUID | None = None
    status: ProcedureStatus | None = None
    is_active: bool | None = None


class ProcedureStore(Protocol):
    """Procedures of a tenant with their versions. Every method is atomic."""

    async def load_procedures(
        self, tenant_id: str, agent_id: UUID, known_stamp: str | None
    ) -> tuple[str, list[Procedure] | None]:
        """The stamp of what the agent may follow (approved, active, its own or shared), and that, unless `known_stamp`
        still holds."""
        ...

    async def load_drafts(self, tenant_id: str, agent_id: UUID) -> list[Procedure]:
        """What the agent may follow and what it might one day: pending and switched off, but not rejected."""
        ...

    async def nearest_procedures(
        self, tenant_id: str, agent_id: UUID, vector: Vector, limit: int, among: Among = "followed"
    ) -> list[tuple[Procedure, float]]:
        """Procedures of the agent and shared ones, with the cosine of the nearest vector of each; best first."""
        ...

    async def create_procedure(
        self, tenant_id: str, procedure: Procedure, vectors: Sequence[Vector], change: Change
    ) -> bool:
        """False when there is no such agent. Raises `Conflict` for a name that the agent has already."""
        ...

    async def update_procedure(
        self,
        tenant_id: str,
        procedure: Procedure,
        vectors: Sequence[Vector] | None,
        change: Change,
        changed_by: str,
        note: str | None = None,
    ) -> Procedure | None:
        """Write the next version if the procedure is still at its `version`; None when it is not.

        `vectors` None keeps the stored ones. Raises `Conflict` for a name that the agent has already.
        """
        ...

    async def get_procedure(self, tenant_id: str, procedure_id: UUID) -> Procedure | None: ...

    async def list_procedures(self, tenant_id: str, wanted: Filter, after: Place | None, limit: int) -> list[Procedure]:
        """Newest first, from the one after `after`."""
        ...

    async def delete_procedure(self, tenant_id: str, procedure_id: UUID) -> bool: ...

    async def list_versions(self, tenant_id: str, procedure_id: UUID) -> list[ProcedureVersion]:
        """Newest first."""
        ...

    async def get_version(self, tenant_id: str, procedure_id: UUID, version: int) -> ProcedureVersion | None: ...


class CaptureStore(Protocol):
    """Which sessions have been judged, and what came of it; and how procedures are used."""

    async def get_capture(self, tenant_id: str, conversation_id: UUID) -> Capture | None: ...

    async def put_capture(
        self, tenant_id: str, capture: Capture, candidate: Procedure | None = None, vectors: Sequence[Vector] = ()
    ) -> bool:
        """Keep the verdict on a session, with the candidate that it yields.

        False, and nothing written, when the session has been judged already or is gone. Raises `Conflict` for a name
        that the agent has already.
        """
        ...

    async def note_announced(self, tenant_id: str, conversation_id: UUID) -> None: ...

    async def list_captures(self, tenant_id: str, procedure_id: UUID) -> list[Capture]:
        """The sessions that showed a procedure, oldest first."""
        ...

    async def statistics(self, tenant_id: str, procedure_id: UUID | None) -> list[ProcedureStatistics]:
        """Of one procedure, or of all that were ever used, most recently used first."""
        ...
