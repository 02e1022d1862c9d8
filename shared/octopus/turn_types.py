"""What is asked of a turn, what limits it, and what is known of it when the model is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from octopus.model import ModelRequest
from octopus.recall import Scope
from octopus.tools.types import ToolSpec
from octopus.working.assembly import Ingredients
from octopus.working.trace import StoreReport
from octopus.working.types import Tokens, WorkingMemory

# Ends a session, by tenant and conversation, if its agent has asked for that.
EndSession = Callable[[str, UUID], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a caller asks. `message_id` makes a retry of the same request find the turn instead of beginning another."""

    agent_id: UUID
    message: str
    conversation_id: UUID | None = None
    message_id: str | None = None
    inspect: bool = False


@dataclass(frozen=True, slots=True)
class TurnPolicy:
    """Limits of a turn, from the settings. `cache_minimum_tokens` is the shortest prefix that the model caches."""

    model: str
    message_max_chars: int
    lease_s: int
    max_s: int
    cache_minimum_tokens: int


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn whose message is durable. `arrived` is a reading of ``time.perf_counter``."""

    scope: Scope
    turn_id: UUID
    attempt_id: UUID
    conversation_id: UUID
    continued_from: UUID | None
    model: str
    given: Ingredients
    memory: WorkingMemory
    tools: Sequence[ToolSpec]
    tokens: Tokens
    stores: list[StoreReport]
    arrived: float
    loaded_ms: float
    read_ms: float
    assemble_ms: float
    inspect: bool

    @property
    def raw_tokens(self) -> int:
        """What our tokenizer counts of working memory, before the model's factor."""
        return round(self.memory.budget.used / self.tokens.factor)

    def request(self, memory: WorkingMemory, exchange: Sequence[dict[str, Any]] = ()) -> ModelRequest:
        """The call to the model: working memory, then the tool calls and results of this turn so far."""
        return ModelRequest(
            model=self.model,
            system=memory.system,
            messages=[*memory.messages, *exchange],
            max_tokens=memory.budget.output_reserve_tokens,
            tools=[asdict(tool) for tool in self.tools],
        )
