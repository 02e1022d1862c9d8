"""Episodic memory of one test: the real rooms on a real database, with a scripted model and a bus that remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from pydantic import BaseModel

from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.tokens import count_tokens
from octopus.conversations.session_store import PostgresSessionStore
from octopus.conversations.sessions import SessionEnded, Sessions
from octopus.conversations.store import PostgresConversationLog
from octopus.episodic.closing import EpisodeWriter
from octopus.episodic.library import Episodes
from octopus.episodic.recall import EpisodicRecall
from octopus.episodic.store import PostgresEpisodeStore
from octopus.episodic.summarizer import Summarizer
from octopus.episodic.types import Recollection
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig
from octopus.recall import Query, Scope
from tests.support.embedder import WordEmbedder
from tests.support.sessions import Exchange, RecordingBus, ScriptedModel, hold_session

ADA = Principal("acme", "ada")
ADMIN = Principal("acme", "root", frozenset({Role.ADMIN}))
TEAL = [
    ("My favourite colour is teal. Please remember it.", "I will remember that you like teal."),
    ("Can you book a table at Luigi's for Friday?", "Done: a table for two at Luigi's on Friday."),
]


def reply(schema: type[BaseModel], text: str) -> Mapping[str, Any]:
    return {
        "summary": "The user told a favourite colour and had a table booked.",
        "key_facts": [
            {"statement": "The user's favourite colour is teal.", "messages": [1]},
            {"statement": "A table at Luigi's is booked for Friday 2026-11-27.", "messages": [3, 4]},
            {"statement": "The user owns a yacht.", "messages": [99]},
        ],
    }


class Memory:
    """Episodic memory of one test, with its outside."""

    def __init__(self, database: Database, space: EmbeddingSpace, embedder: WordEmbedder, scope: Scope) -> None:
        self.scope = scope
        self.embedder = embedder
        self.log = PostgresConversationLog(database)
        self.bus = RecordingBus()
        self.sessions = Sessions(PostgresSessionStore(database), self.bus)
        self.store = PostgresEpisodeStore(database, space)
        self.model = ScriptedModel(reply)
        self.writer = EpisodeWriter(self.store, Summarizer(self.model, count_tokens), embedder, count_tokens)
        self.recall_room = EpisodicRecall(self.store, embedder)
        self.episodes = Episodes(self.store, self.recall_room, embedder)

    async def ended(self, talk: list[Exchange], scope: Scope | None = None) -> SessionEnded:
        """The event of a session that was held and closed."""
        scope = scope or self.scope
        conversation = await hold_session(self.log, scope, talk)
        await self.sessions.close(Principal(scope.tenant_id, scope.user_id), conversation)
        return SessionEnded(**self.bus.events[-1])

    async def remembered(self, talk: list[Exchange], scope: Scope | None = None) -> UUID:
        """The episode of a session that was held and closed."""
        return await self.remembered_of(await self.ended(talk, scope))

    async def remembered_of(self, event: SessionEnded) -> UUID:
        assert await self.writer.remember(event, str(uuid4())) == "written"
        listed = await self.episodes.list(Principal(event.tenant_id, "root", frozenset({Role.ADMIN})))
        [episode] = [e.episode_id for e in listed.items if e.conversation_id == event.conversation_id]
        return episode

    async def recalled(self, text: str, scope: Scope | None = None, **config: Any) -> list[UUID]:
        return [e.episode_id for e in (await self.recollection(text, scope, **config)).episodes]

    async def recollection(self, text: str, scope: Scope | None = None, **config: Any) -> Recollection:
        async def vector() -> list[float]:
            return (await self.embedder.embed([text]))[0]

        settings = MemoryConfig(**{"episodic_min_score": 0.3, **config})
        return await self.recall_room.recall(scope or self.scope, Query(text, vector()), settings)
