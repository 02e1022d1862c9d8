"""What a turn says while it runs: the events of the stream, in the order of the wire contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal
from uuid import UUID

from octopus.errors import OctopusError
from octopus.problem import problem
from octopus.working.trace import StoreReport
from octopus.working.types import Section, WorkingMemory

_STORE_OF = {"procedure": "procedural", "knowledge": "semantic", "episodes": "episodic"}


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """An event of the stream; `name` is the SSE event type, the fields are its JSON data."""

    name: ClassVar[str]

    def data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Waiting(TurnEvent):
    """The turn cannot begin yet; nothing is written yet either. Comes before `turn_start` or `error`, if at all."""

    name: ClassVar[str] = "waiting"
    detail: str


@dataclass(frozen=True, slots=True)
class TurnStart(TurnEvent):
    """The message is durable. `continued_from` is the ended conversation that the request named, if it did."""

    name: ClassVar[str] = "turn_start"
    turn_id: UUID
    conversation_id: UUID
    replayed: bool = False
    continued_from: UUID | None = None


@dataclass(frozen=True, slots=True)
class MemorySection:
    """One section of working memory; `ms` and `degraded` are those of the store that it came from."""

    name: str
    tokens: int
    count: int
    ms: float | None = None
    degraded: Literal["failed", "late"] | None = None


@dataclass(frozen=True, slots=True)
class MemoryAssembled(TurnEvent):
    """What each memory contributes to this turn, in tokens of the budget."""

    name: ClassVar[str] = "memory"
    sections: list[MemorySection]
    used_tokens: int
    available_tokens: int
    max_working_memory_tokens: int
    degraded: bool = False


def assembled(memory: WorkingMemory, stores: Sequence[StoreReport]) -> MemoryAssembled:
    """The event of a working memory, with how the stores did that it was recalled from."""
    by_name: dict[str, StoreReport] = {store.name: store for store in stores}

    def section(of: Section) -> MemorySection:
        store = by_name.get(_STORE_OF.get(of.name, ""))
        count = memory.pruning.turns_kept if of.name == "history" else of.included
        return MemorySection(of.name, of.tokens, count, store.ms if store else None, store.degraded if store else None)

    budget = memory.budget
    return MemoryAssembled(
        [section(of) for of in memory.sections],
        budget.used,
        budget.available,
        budget.max_working_memory_tokens,
        degraded=any(store.degraded for store in stores),
    )


@dataclass(frozen=True, slots=True)
class ContextReport(TurnEvent):
    """The inspector's report, inline; asked for with `inspect` and the role OctopusDebug."""

    name: ClassVar[str] = "context"
    report: dict[str, Any]

    def data(self) -> dict[str, Any]:
        return self.report


@dataclass(frozen=True, slots=True)
class Token(TurnEvent):
    """A piece of the answer."""

    name: ClassVar[str] = "token"
    text: str


@dataclass(frozen=True, slots=True)
class ToolCalled(TurnEvent):
    """The model calls a tool."""

    name: ClassVar[str] = "tool_call"
    tool_call_id: str
    tool_name: str


@dataclass(frozen=True, slots=True)
class ToolResulted(TurnEvent):
    """A tool has answered, or failed."""

    name: ClassVar[str] = "tool_result"
    tool_call_id: str
    tool_name: str
    is_error: bool
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class TurnEnd(TurnEvent):
    """The answer is durable. `message_id` is None when the model said nothing."""

    name: ClassVar[str] = "turn_end"
    message_id: UUID | None
    stop_reason: str
    usage: dict[str, int] = field(default_factory=dict)
    elapsed_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnError(TurnEvent):
    """The turn ends here. What was answered so far is kept; with `retryable`, send the same message_id again."""

    name: ClassVar[str] = "error"
    error: OctopusError

    def data(self) -> dict[str, Any]:
        return problem(self.error)


@dataclass(frozen=True, slots=True)
class CollectedTurn:
    """A whole turn as one document, for a client that does not stream."""

    turn_id: UUID
    conversation_id: UUID
    message_id: UUID | None
    text: str
    stop_reason: str
    usage: dict[str, int]
    elapsed_ms: float
    memory: dict[str, Any] | None
    replayed: bool
    continued_from: UUID | None
    context: dict[str, Any] | None = None


async def collected(events: AsyncIterator[TurnEvent]) -> CollectedTurn:
    """Wait for the turn to end. Raises the error that it ended with."""
    start: TurnStart | None = None
    memory: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    text = ""
    async for event in events:
        match event:
            case TurnStart():
                start = event
            case MemoryAssembled():
                memory = event.data()
            case ContextReport():
                context = event.report
            case Token():
                text += event.text
            case TurnError():
                raise event.error
            case TurnEnd() if start:
                return CollectedTurn(
                    turn_id=start.turn_id,
                    conversation_id=start.conversation_id,
                    message_id=event.message_id,
                    text=text,
                    stop_reason=event.stop_reason,
                    usage=event.usage,
                    elapsed_ms=event.elapsed_ms,
                    memory=memory,
                    replayed=start.replayed,
                    continued_from=start.continued_from,
                    context=context,
                )
    raise OctopusError("The turn ended without saying how.")
