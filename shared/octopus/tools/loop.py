"""The calls of one reply, run together: whatever happens to a tool, the model gets a result to go on with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from octopus.errors import OctopusError
from octopus.recall import Scope
from octopus.text import made_storable
from octopus.tools.ports import ToolBox
from octopus.tools.types import Occasion, ToolCall, ToolOutcome


async def run_calls(toolbox: ToolBox, scope: Scope, occasion: Occasion, calls: Sequence[ToolCall]) -> list[ToolOutcome]:
    """One outcome per call, in order. A call that fails has the reason as its outcome, for the model to read."""
    return await asyncio.gather(*(_run(toolbox, scope, occasion, call) for call in calls))


async def _run(toolbox: ToolBox, scope: Scope, occasion: Occasion, call: ToolCall) -> ToolOutcome:
    began = time.perf_counter()
    try:
        content, is_error = await toolbox.call(scope, occasion, call), False
    except OctopusError as error:
        content, is_error = error.detail, True
    elapsed_ms = (time.perf_counter() - began) * 1000
    return ToolOutcome(call.id, call.name, made_storable(content), is_error, elapsed_ms)
