"""Tools that every agent has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from octopus.agents.ports import AgentStore
from octopus.embedding import Embedder
from octopus.memory_config import MemoryConfig
from octopus.recall import Query, Scope
from octopus.relevance import Vector
from octopus.semantic.types import Knowledge
from octopus.tools.types import Occasion, ToolFailed, ToolSpec
from octopus.working.sections import chunk_text

CLOSE_SESSION = "close_session"
NOTHING_FOUND = "No document of the knowledge base answers this."


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A tool that runs in process."""

    spec: ToolSpec
    run: Callable[[Scope, Occasion, Mapping[str, Any]], Awaitable[str]]


class KnowledgeSource(Protocol):
    """The read side of semantic memory."""

    async def recall(self, scope: Scope, query: Query, config: MemoryConfig) -> Knowledge: ...


def search_knowledge(source: KnowledgeSource, agents: AgentStore, embedder: Embedder) -> BuiltIn:
    """Search the agent's documents for something else than the user's message."""

    async def run(scope: Scope, _: Occasion, arguments: Mapping[str, Any]) -> str:
        agent = await agents.get_agent(scope.tenant_id, scope.agent_id)
        if agent is None:
            raise ToolFailed("The agent has been deleted.")

        async def embedding() -> Vector:
            return (await embedder.embed([arguments["query"]]))[0]

        knowledge = await source.recall(scope, Query(arguments["query"], embedding()), agent.memory_config)
        return "".join(map(chunk_text, knowledge.chunks)) or NOTHING_FOUND

    schema = {
        "type": "object",
        "properties": {"query": {"type": "string", "minLength": 1, "description": "What to look for, in full words."}},
        "required": ["query"],
        "additionalProperties": False,
    }
    description = "Search the knowledge base for passages about something that is not in [Retrieved Knowledge] already."
    return BuiltIn(ToolSpec("search_knowledge", description, schema), run)


def close_session(request_end: Callable[[str, UUID, UUID], Awaitable[bool]]) -> BuiltIn:
    """End the session with this turn. `request_end` takes tenant, conversation and turn."""

    async def run(scope: Scope, occasion: Occasion, _: Mapping[str, Any]) -> str:
        if not await request_end(scope.tenant_id, occasion.conversation_id, occasion.turn_id):
            raise ToolFailed("The session cannot be closed: another turn has taken over the conversation.")
        return "The session will be closed after this answer."

    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    description = "End this conversation. Call it only when the user has said goodbye or has asked for it to be closed."
    return BuiltIn(ToolSpec(CLOSE_SESSION, description, schema), run)
