"""The tools of an agent: the built-in ones and those registered for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from octopus.errors import DatabaseUnavailable, OctopusError
from octopus.recall import Scope
from octopus.tools.builtin import BuiltIn
from octopus.tools.ports import ToolStore, ToolTargets
from octopus.tools.schema import check_arguments
from octopus.tools.types import (
    ArgumentsRefused,
    CallOutcome,
    CallRecord,
    Occasion,
    ToolCall,
    ToolFailed,
    ToolSpec,
)

TIMEOUT_S = 30.0

# More than any token of prose or code has; a longer beginning need not be counted.
_CHARS_PER_TOKEN = 16


class AgentToolBox:
    """Implements `octopus.tools.ports.ToolBox`. Every call is on record before it is made."""

    def __init__(
        self,
        built_in: Iterable[BuiltIn],
        store: ToolStore,
        targets: ToolTargets,
        count_tokens: Callable[[str], int],
        *,
        result_max_tokens: int,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._built_in = {tool.spec.name: tool for tool in built_in}
        self._store = store
        self._targets = targets
        self._count_tokens = count_tokens
        self._result_max_tokens = result_max_tokens
        self._timeout_s = timeout_s

    async def specs(self, scope: Scope) -> list[ToolSpec]:
        registered = await self._store.list_tools(scope.tenant_id, scope.agent_id)
        return [tool.spec for tool in self._built_in.values()] + [tool.spec for tool in registered if tool.is_active]

    async def call(self, scope: Scope, occasion: Occasion, call: ToolCall) -> str:
        """The result, cut to the cap. A tool that has not answered in time is left alone."""
        record = _record(scope, occasion, call)
        await self._store.begin_call(scope.tenant_id, record)
        began = time.perf_counter()
        outcome: CallOutcome = "cancelled"
        try:
            async with asyncio.timeout(self._timeout_s):
                content = await self._run(scope, occasion, call)
            outcome = "succeeded"
        except TimeoutError as exc:
            outcome = "timed out"
            raise ToolFailed(f"{call.name} did not answer within {self._timeout_s:g} seconds.") from exc
        except OctopusError as exc:
            outcome = "refused" if isinstance(exc, ArgumentsRefused) else "failed"
            raise
        finally:
            elapsed_ms = (time.perf_counter() - began) * 1000
            with suppress(DatabaseUnavailable):  # the call was made; what it brought is not to be lost
                await self._store.finish_call(scope.tenant_id, record.tool_call_id, outcome, elapsed_ms)
        return capped(content, self._result_max_tokens, self._count_tokens)

    async def _run(self, scope: Scope, occasion: Occasion, call: ToolCall) -> str:
        if built_in := self._built_in.get(call.name):
            check_arguments(built_in.spec.input_schema, call.arguments)
            return await built_in.run(scope, occasion, call.arguments)
        tool = await self._store.get_tool(scope.tenant_id, scope.agent_id, call.name)
        if tool is None or not tool.is_active:
            raise ArgumentsRefused(f"There is no tool {call.name}.")
        check_arguments(tool.input_schema, call.arguments)
        return await self._targets.invoke(scope.tenant_id, tool.target, payload(scope, occasion, call))


def payload(scope: Scope, occasion: Occasion, call: ToolCall) -> Mapping[str, Any]:
    """What a target is sent: the model's arguments, and apart from them what the platform vouches for."""
    return {
        "tool": call.name,
        "arguments": call.arguments,
        "context": {
            "tenant_id": scope.tenant_id,
            "user_id": scope.user_id,
            "agent_id": str(scope.agent_id),
            "conversation_id": str(occasion.conversation_id),
            "turn_id": str(occasion.turn_id),
            "call_id": call.id,
        },
    }


def capped(text: str, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """At most `max_tokens` of `text`, with a notice when something is missing."""
    kept = text[: max_tokens * _CHARS_PER_TOKEN]
    while (tokens := count_tokens(kept)) > max_tokens:
        kept = kept[: len(kept) * max_tokens // tokens]
    if len(kept) == len(text):
        return text
    return f"{kept}\n[... result truncated: {len(text) - len(kept)} more characters omitted ...]"


def _record(scope: Scope, occasion: Occasion, call: ToolCall) -> CallRecord:
    procedure = occasion.procedure
    steps = [step.order for step in procedure.steps if step.tool_name == call.name] if procedure else []
    return CallRecord(
        tool_call_id=uuid4(),
        conversation_id=occasion.conversation_id,
        turn_id=occasion.turn_id,
        agent_id=scope.agent_id,
        user_id=scope.user_id,
        call_id=call.id,
        name=call.name,
        arguments=call.arguments,
        outcome="running",
        duration_ms=None,
        procedure_id=procedure.procedure_id if procedure and steps else None,
        procedure_version=procedure.version if procedure and steps else None,
        step=min(steps, default=None),
        called_at=datetime.now(UTC),
    )
