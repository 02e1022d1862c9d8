"""A turn runner whose memories, tools and model do what the test says, on a real log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.tokens import count_tokens
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.types import Message, text_of
from octopus.episodic.types import Recollection
from octopus.identity import Principal
from octopus.memory_config import MemoryConfig
from octopus.procedural.types import Guidance
from octopus.read_phase import ReadPhase
from octopus.recall import Query, Scope
from octopus.semantic.types import Knowledge
from octopus.tools.types import Occasion, ToolCall, ToolSpec
from octopus.turn import TurnRunner
from octopus.turn_events import TurnEvent, TurnStart
from octopus.turn_types import TurnPolicy, TurnRequest
from octopus.working.folding import Folding
from octopus.working.store import PostgresFactorStore
from octopus.working.token_factor import TokenFactors
from tests.support.embedder import WordEmbedder
from tests.support.model import ScriptedModel
from tests.support.observer import RecordingObserver

ADA = Principal("acme", "ada")


class Memory:
    """A memory that finds nothing, fails or is late, as the test wants."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.error: Exception | None = None
        self.delay_s = 0.0

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Any:
        await asyncio.sleep(self.delay_s)
        if self.error:
            raise self.error
        return self.found


class Tools:
    """One tool that echoes; it can be told to hang."""

    def __init__(self) -> None:
        self.hang = False

    async def specs(self, scope: Scope) -> Sequence[ToolSpec]:
        return [ToolSpec("echo", "Says it again.", {"type": "object"})]

    async def call(self, scope: Scope, occasion: Occasion, call: ToolCall) -> str:
        if self.hang:
            await asyncio.Event().wait()
        return f"echo {call.arguments['what']}"


class House:
    """A turn runner with everything that a test wants to reach into."""

    def __init__(self, database: Database, embedder: WordEmbedder, agent: Agent) -> None:
        self.database = database
        self.agent = agent
        self.log = PostgresConversationLog(database)
        self.model = ScriptedModel()
        self.tools = Tools()
        self.observer = RecordingObserver()
        self.procedural, self.semantic, self.episodic = Memory(Guidance()), Memory(Knowledge()), Memory(Recollection())
        self.policy = TurnPolicy("test-model", 10_000, 30, 30, 1024)
        self.embedder = embedder
        self.closed: list[tuple[str, UUID]] = []

    async def end_session(self, tenant_id: str, conversation_id: UUID) -> None:
        self.closed.append((tenant_id, conversation_id))

    def runner(self) -> TurnRunner:
        return TurnRunner(
            log=self.log,
            read_phase=ReadPhase(self.procedural, self.semantic, self.episodic, deadline_s=0.2, observer=self.observer),
            embedder=self.embedder,
            model=self.model,
            toolbox=self.tools,
            factors=TokenFactors(PostgresFactorStore(self.database), count_tokens, 1.25),
            folding=Folding(self.log, self.model),
            observer=self.observer,
            policy=self.policy,
            end_session=self.end_session,
        )

    def request(self, message: str, **kwargs: Any) -> TurnRequest:
        return TurnRequest(self.agent.agent_id, message, **kwargs)

    async def begin(self, message: str, caller: Principal = ADA, **kwargs: Any) -> AsyncIterator[TurnEvent]:
        return await self.runner().begin(caller, self.request(message, **kwargs))

    async def take(self, message: str, **kwargs: Any) -> list[TurnEvent]:
        return [event async for event in await self.begin(message, **kwargs)]

    async def messages(self, conversation_id: UUID) -> list[Message]:
        return await self.log.messages_between("acme", conversation_id, 1, 1_000)


def start_of(events: list[TurnEvent]) -> TurnStart:
    assert isinstance(events[0], TurnStart)
    return events[0]


def said(messages: list[Message]) -> list[tuple[str, str]]:
    """Role and text of each message."""
    return [(message.role, text_of(message.content)) for message in messages]


async def until(condition: Any) -> None:
    """Wait until it holds, five seconds at most."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)
