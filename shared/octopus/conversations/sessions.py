"""The life of a session: who may look at it, how it ends, and that its end is announced.

A session ends once, in one statement, and then goes on the bus as ``SessionEnded``. If the bus does not take the event
the session has ended all the same; the sweep (`octopus.conversations.sweep`) announces it again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from octopus.conversations.types import EndReason, Message
from octopus.errors import InvalidInput, NotFound, TurnInProgress, Unavailable
from octopus.events import EventBus
from octopus.identity import Principal
from octopus.paging import Page, Place, first_page

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation as its owner sees it in a list. `last_seq` is the number of messages in the log."""

    conversation_id: UUID
    agent_id: UUID
    user_id: str
    status: Literal["active", "ended"]
    last_seq: int
    started_at: datetime
    last_message_at: datetime
    ended_at: datetime | None
    end_reason: EndReason | None
    archived_at: datetime | None


class SessionEnded(BaseModel):
    """The event: ids and numbers, no content. Nothing is said in a session after its `last_seq`."""

    model_config = ConfigDict(frozen=True)

    tenant_id: str
    conversation_id: UUID
    agent_id: UUID
    reason: EndReason
    last_seq: int


@dataclass(frozen=True, slots=True)
class Feedback:
    """A user's thumb, up (1) or down (-1), on a message; a later one replaces it."""

    message_id: UUID
    rating: Literal[1, -1]
    comment: str | None
    created_at: datetime


class SessionStore(Protocol):
    """Sessions of one tenant. `user_id` None means any user's. Every method is atomic."""

    async def list_sessions(
        self, tenant_id: str, user_id: str | None, agent_id: UUID | None, before: Place | None, limit: int
    ) -> list[Session]:
        """Newest first."""
        ...

    async def get_session(self, tenant_id: str, user_id: str | None, conversation_id: UUID) -> Session | None: ...

    async def session_messages(
        self, tenant_id: str, conversation_id: UUID, after_seq: int, limit: int
    ) -> list[Message]: ...

    async def end_session(
        self, tenant_id: str, user_id: str | None, conversation_id: UUID, reason: EndReason
    ) -> Session | None:
        """None, and nothing changed, when it has ended already or a turn holds it."""
        ...

    async def end_abandoned_session(self, tenant_id: str, conversation_id: UUID, last_seq: int) -> Session | None:
        """End it if nothing was said after `last_seq`: as AgentClosed if its agent asked to, as ErrorClosed after a
        turn that failed, else as Timeout."""
        ...

    async def request_end(self, tenant_id: str, conversation_id: UUID, turn_id: UUID) -> bool:
        """Note that the session is to end with this turn. False when the turn does not hold the conversation."""
        ...

    async def end_requested_session(self, tenant_id: str, conversation_id: UUID) -> Session | None:
        """End it if that was asked for and no turn holds it."""
        ...

    async def note_announcement(self, tenant_id: str, conversation_id: UUID) -> SessionEnded | None:
        """What to announce for an ended session whose episode is not settled, counted as announced once more."""
        ...

    async def put_feedback(
        self, tenant_id: str, user_id: str, conversation_id: UUID, message_id: UUID, rating: int, comment: str | None
    ) -> Feedback | None:
        """None when the user has no such message."""
        ...


class Sessions:
    """The caller's sessions; with the administrator's role, the tenant's."""

    def __init__(self, store: SessionStore, bus: EventBus) -> None:
        self._store = store
        self._bus = bus

    async def list(
        self,
        caller: Principal,
        *,
        agent_id: UUID | None = None,
        user_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Session]:
        """Newest first. Raises `Forbidden` for another's `user_id` without the role."""
        before = Place.of(cursor) if cursor else None
        owner = caller.reach(user_id)
        sessions = await self._store.list_sessions(caller.tenant_id, owner, agent_id, before, limit + 1)
        return first_page(sessions, limit, lambda session: Place(session.started_at, session.conversation_id))

    async def get(self, caller: Principal, conversation_id: UUID) -> Session:
        session = await self._store.get_session(caller.tenant_id, caller.reach(), conversation_id)
        if session is None:
            raise NotFound(f"There is no conversation {conversation_id}.")
        return session

    async def messages(
        self, caller: Principal, conversation_id: UUID, *, cursor: str | None = None, limit: int = 100
    ) -> Page[Message]:
        """The log in order; the cursor is the `seq` of the last message seen."""
        if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 9):
            raise InvalidInput("cursor: send the next_cursor of an earlier page.", field="cursor")
        await self.get(caller, conversation_id)
        messages = await self._store.session_messages(caller.tenant_id, conversation_id, int(cursor or 0), limit + 1)
        shown = messages[:limit]
        return Page(shown, str(shown[-1].seq) if len(messages) > limit else None)

    async def close(self, caller: Principal, conversation_id: UUID) -> Session:
        """End the session; one that has ended stays as it is. Raises `TurnInProgress` during a turn."""
        ended = await self._store.end_session(caller.tenant_id, caller.reach(), conversation_id, "UserClosed")
        if ended is None:
            session = await self.get(caller, conversation_id)
            if session.status == "ended":
                return session
            raise TurnInProgress(
                "A turn of this conversation is being answered; close it when the turn has ended.", retry_after=2
            )
        await self._announce(caller.tenant_id, ended)
        return ended

    async def request_end(self, tenant_id: str, conversation_id: UUID, turn_id: UUID) -> bool:
        """For the agent's tool, in the middle of turn `turn_id`: let the session end when the turn has."""
        return await self._store.request_end(tenant_id, conversation_id, turn_id)

    async def end_if_requested(self, tenant_id: str, conversation_id: UUID) -> Session | None:
        """For the turn, once its answer is written: end the session if its agent has asked for that."""
        ended = await self._store.end_requested_session(tenant_id, conversation_id)
        if ended:
            await self._announce(tenant_id, ended)
        return ended

    async def end_abandoned(self, tenant_id: str, conversation_id: UUID, last_seq: int) -> Session | None:
        """For the sweep: end a session in which nothing was said after `last_seq`."""
        ended = await self._store.end_abandoned_session(tenant_id, conversation_id, last_seq)
        if ended:
            await self._announce(tenant_id, ended)
        return ended

    async def announce_again(self, tenant_id: str, conversation_id: UUID) -> bool:
        """For the sweep: announce an ended session that has not become an episode. Raises `Unavailable`."""
        event = await self._store.note_announcement(tenant_id, conversation_id)
        if event is None:
            return False
        await self._publish(event)
        return True

    async def rate(
        self, caller: Principal, conversation_id: UUID, message_id: UUID, rating: Literal[1, -1], comment: str | None
    ) -> Feedback:
        """Put the caller's thumb on a message of their own conversation."""
        feedback = await self._store.put_feedback(
            caller.tenant_id, caller.user_id, conversation_id, message_id, rating, comment
        )
        if feedback is None:
            raise NotFound(f"There is no message {message_id} in conversation {conversation_id}.")
        return feedback

    async def _announce(self, tenant_id: str, ended: Session) -> None:
        assert ended.end_reason is not None  # it has ended
        event = SessionEnded(
            tenant_id=tenant_id,
            conversation_id=ended.conversation_id,
            agent_id=ended.agent_id,
            reason=ended.end_reason,
            last_seq=ended.last_seq,
        )
        try:
            await self._publish(event)
        except Unavailable:
            log.warning("the end of conversation %s is not announced; the sweep will", ended.conversation_id)

    async def _publish(self, event: SessionEnded) -> None:
        await self._bus.publish("SessionEnded", event.model_dump(mode="json"))
