"""What an agent can do."""

from __future__ import annotations

from functools import cached_property

from octopus.cloud.tokens import count_tokens
from octopus.cloud.tool_targets import ToolEndpoints
from octopus.cloud.wiring.conversations import Conversations
from octopus.cloud.wiring.semantic import Semantic
from octopus.tools.builtin import BuiltIn, close_session, search_knowledge
from octopus.tools.registry import ToolRegistry
from octopus.tools.store import PostgresToolStore
from octopus.tools.toolbox import AgentToolBox


class Tools(Semantic, Conversations):
    """Tools: built in and registered."""

    @cached_property
    def tool_store(self) -> PostgresToolStore:
        return PostgresToolStore(self.database)

    @cached_property
    def tool_endpoints(self) -> ToolEndpoints:
        return ToolEndpoints(
            function_prefix=self.settings.tool_function_prefix,
            hosts=self.settings.tool_hosts,
            secrets_prefix=self.settings.tool_secrets_prefix,
        )

    @cached_property
    def built_in_tools(self) -> list[BuiltIn]:
        return [
            search_knowledge(self.knowledge, self.agent_store, self.query_embedder),
            close_session(self.sessions.request_end),
        ]

    @cached_property
    def toolbox(self) -> AgentToolBox:
        return AgentToolBox(
            self.built_in_tools,
            self.tool_store,
            self.tool_endpoints,
            count_tokens,
            result_max_tokens=self.settings.tool_result_max_tokens,
        )

    @cached_property
    def tools(self) -> ToolRegistry:
        reserved = {tool.spec.name for tool in self.built_in_tools}
        return ToolRegistry(self.tool_store, self.tool_endpoints, self.agents, reserved)
