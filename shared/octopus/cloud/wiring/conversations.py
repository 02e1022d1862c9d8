"""Agents, and the life of their conversations."""

from __future__ import annotations

from functools import cached_property

from octopus.agents.registry import AgentRegistry
from octopus.agents.store import PostgresAgentStore
from octopus.cloud.wiring.outside import Outside
from octopus.conversations.session_store import PostgresSessionStore
from octopus.conversations.sessions import Sessions
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.sweep import SessionSweep
from octopus.conversations.sweep_store import PostgresSessionFinder


class Conversations(Outside):
    """Agents and conversations."""

    @cached_property
    def agent_store(self) -> PostgresAgentStore:
        return PostgresAgentStore(self.database)

    @cached_property
    def agents(self) -> AgentRegistry:
        return AgentRegistry(self.agent_store)

    @cached_property
    def log(self) -> PostgresConversationLog:
        return PostgresConversationLog(self.database)

    @cached_property
    def session_store(self) -> PostgresSessionStore:
        return PostgresSessionStore(self.database)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self.session_store, self.bus)

    @cached_property
    def session_sweep(self) -> SessionSweep:
        return SessionSweep(PostgresSessionFinder(self.sweep_database), self.sessions)
