"""What the tool loop needs from the outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from octopus.recall import Scope
from octopus.tools.types import ToolCall, ToolSpec


class ToolBox(Protocol):
    """The tools of an agent. Tenant and user come from the scope, never from the model's arguments."""

    async def specs(self, scope: Scope) -> Sequence[ToolSpec]:
        """What the model may call, by name; no name twice."""
        ...

    async def call(self, scope: Scope, conversation_id: UUID, call: ToolCall) -> str:
        """The result. Raises an `OctopusError`, whose detail the model will read, when there is none."""
        ...
