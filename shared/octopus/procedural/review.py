"""What a reviewer looks at: the steps beside the conversation that they were learned from, and how they are used."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from octopus.conversations.sessions import SessionStore
from octopus.conversations.types import Message
from octopus.identity import Principal, Role
from octopus.procedural.library import ProcedureLibrary
from octopus.procedural.ports import CaptureStore
from octopus.procedural.types import Capture, Procedure, ProcedureStatistics

# Messages of the source conversation; the whole log is at /conversations/{id}/messages.
MOST_MESSAGES = 500


@dataclass(frozen=True, slots=True)
class Review:
    """A procedure with its evidence: the sessions that showed it, and the log of the one that it was captured from.

    `conversation` is empty for a procedure that somebody wrote, and once the messages have had their time.
    """

    procedure: Procedure
    evidence: list[Capture]
    conversation: list[Message]
    statistics: ProcedureStatistics


class ProcedureReview:
    """For administrators."""

    def __init__(self, library: ProcedureLibrary, captures: CaptureStore, sessions: SessionStore) -> None:
        self._library = library
        self._captures = captures
        self._sessions = sessions

    async def of(self, caller: Principal, procedure_id: UUID) -> Review:
        """Raises `NotFound`."""
        procedure = await self._library.get(caller, procedure_id)
        evidence = await self._captures.list_captures(caller.tenant_id, procedure_id)
        source = procedure.source_conversation_id
        messages = await self._sessions.session_messages(caller.tenant_id, source, 0, MOST_MESSAGES) if source else []
        used = await self._captures.statistics(caller.tenant_id, procedure_id)
        unused = ProcedureStatistics(procedure_id, matches=0, sessions=0, completions=None, last_used_at=None)
        return Review(procedure, evidence, messages, used[0] if used else unused)

    async def statistics(self, caller: Principal) -> list[ProcedureStatistics]:
        """Of every procedure that was ever used, most recently used first."""
        caller.require(Role.ADMIN)
        return await self._captures.statistics(caller.tenant_id, None)
