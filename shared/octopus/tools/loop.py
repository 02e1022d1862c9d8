"""The calls of one reply, run together: whatever happens to a tool, the model gets a result to go on with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from uuid import UUID

from octopus.errors import OctopusError
from octopus.recall import Scope
from octopus.text import made_storable
from octopus.tools.ports import ToolBox
from octopus.tools.types import ToolCall, ToolOutcome

TIMEOUT_S = 30.0


async def run_calls(
    toolbox: ToolBox,
    scope: Scope,
    conversation_id: UUID,
    calls: Sequence[ToolCall],
    *,
    timeout_s: float = TIMEOUT_S,
) -> list[ToolOutcome]:
    """One outcome per call, in order. A call that fails, or takes longer than `timeout_s`, has an error as outcome."""
    return await asyncio.gather(
        *(_run(toolbox, scope, conversation_id, call, timeout_s) for call in calls),
    )


async def _run(
    toolbox: ToolBox, scope: Scope, conversation_id: UUID, call: ToolCall, timeout_s: float
) -> ToolOutcome:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(timeout_s):
            content, is_error = await toolbox.call(scope, conversation_id, call), False
    except TimeoutError:
        content, is_error = f"{call.name} did not answer within {timeout_s:g} seconds.", True
    except OctopusError as error:
        content, is_error = error.detail, True
    elapsed_ms = (time.perf_counter() - began) * 1000
    return ToolOutcome(call.id, call.name, made_storable(content), is_error, elapsed_ms)
