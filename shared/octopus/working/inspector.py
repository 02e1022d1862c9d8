"""The Context Inspector: what each memory contributed to a turn, and why.

A report joins the trace of a turn (ids and numbers) with what is stored now. Text that has changed since the turn is
marked ``changed``, text that is gone ``erased``: the inspector never shows what was erased, because nothing kept it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from pydantic import TypeAdapter

from octopus.conversations.types import Message, Turn, text_of
from octopus.errors import NotFound
from octopus.identity import Principal, Role
from octopus.working.assembly import Ingredients
from octopus.working.sections import procedure_text
from octopus.working.selection import chunk_id, content_hash, version_hash
from octopus.working.trace import StoreReport, Timings, ToolRecord, TurnTrace
from octopus.working.types import Budget, Item, Pruning, Section

State = Literal["current", "changed", "erased"]
_TRACE = TypeAdapter(TurnTrace)


@dataclass(frozen=True, slots=True)
class Content:
    """Stored text and where it comes from; `fingerprint` is compared with the trace's `content_hash`."""

    source: str
    text: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What is stored of everything that a trace names: items by their id, the history, the user's message."""

    system_prompt: str | None
    agent_version: int | None
    items: Mapping[str, Content]
    messages: list[Message]
    message: str | None


@dataclass(frozen=True, slots=True)
class InspectedItem:
    """One chunk, episode or procedure: its scores (`octopus.recall.Score`), and why it was left out if it was."""

    item_id: str
    source: str | None
    text: str | None
    state: State
    tokens: int
    rank: int
    cosine: float | None
    relevance: float | None
    threshold: float | None
    rule: str | None
    included: bool
    left_out: str | None
    decided_by: str | None = None
    share: float | None = None
    cosine_rank: int | None = None
    share_rank: int | None = None


@dataclass(frozen=True, slots=True)
class InspectedSection:
    """One section in the order of the prompt, with its share of the budget in percent."""

    name: str
    tokens: int
    percent: float
    text: str | None = None
    state: State = "current"
    items: list[InspectedItem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class InspectedUsage:
    """Tokens as the provider counted them. `input_tokens` is the uncached rest only."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


@dataclass(frozen=True, slots=True)
class InspectorReport:
    """The account of one turn."""

    turn_id: UUID
    conversation_id: UUID
    agent_id: UUID
    status: str
    started_at: datetime | None
    model: str
    layout: str
    stop_reason: str | None
    budget: Budget
    used_percent: float
    sections: list[InspectedSection]
    procedure_matched: str | None
    pruning: Pruning
    stores: list[StoreReport]
    degraded: bool
    usage: InspectedUsage
    timings: Timings
    token_factor: float
    tools: list[ToolRecord]


class InspectorStore(Protocol):
    """What the inspector reads."""

    async def get_turn(self, tenant_id: str, conversation_id: UUID, turn_id: UUID) -> Turn | None: ...

    async def contents_now(self, tenant_id: str, turn: Turn, trace: TurnTrace) -> Contents: ...


class Inspector:
    """Reports on past turns, to callers with the role OctopusDebug."""

    def __init__(self, store: InspectorStore) -> None:
        self._store = store

    async def inspect(self, caller: Principal, conversation_id: UUID, turn_id: UUID) -> InspectorReport:
        """Raises `Forbidden`, and `NotFound` for a turn that is unknown, another tenant's, or not finished."""
        caller.require(Role.DEBUG)
        turn = await self._store.get_turn(caller.tenant_id, conversation_id, turn_id)
        if turn is None:
            raise NotFound(f"There is no turn {turn_id} in conversation {conversation_id}.")
        if turn.trace is None:
            raise NotFound(f"Turn {turn_id} has no trace: it is still running, or its end could not be written.")
        trace = _TRACE.validate_python(turn.trace)
        contents = await self._store.contents_now(caller.tenant_id, turn, trace)
        return report(trace, contents, turn.status, turn.started_at)


def report(trace: TurnTrace, contents: Contents, status: str, started_at: datetime | None) -> InspectorReport:
    """Join a trace with contents."""
    by_name = {section.name: section for section in trace.sections}
    chosen = [item for item in by_name["procedure"].items if item.left_out is None]
    matched = contents.items.get(chosen[0].item_id) if chosen else None
    return InspectorReport(
        turn_id=trace.turn_id,
        conversation_id=trace.conversation_id,
        agent_id=trace.agent_id,
        status=status,
        started_at=started_at,
        model=trace.model,
        layout=trace.layout,
        stop_reason=trace.stop_reason,
        budget=trace.budget,
        used_percent=_percent(trace.budget.used, trace.budget),
        sections=[_section(section, trace, contents) for section in trace.sections],
        procedure_matched=matched.source if matched else None,
        pruning=trace.pruning,
        stores=trace.stores,
        degraded=any(store.degraded for store in trace.stores),
        usage=InspectedUsage(
            trace.usage.input_tokens,
            trace.usage.output_tokens,
            trace.usage.cache_read_tokens,
            trace.usage.cache_write_tokens,
        ),
        timings=trace.timings,
        token_factor=trace.token_factor,
        tools=trace.tools,
    )


def shown(given: Ingredients) -> Contents:
    """The contents of a turn that is just being taken: what was recalled, before anything could change."""
    items = {}
    for chunk in given.knowledge.chunks + given.knowledge.near_misses:
        items[chunk_id(chunk)] = Content(chunk.source, chunk.content, content_hash(chunk.content))
    for episode in given.recollection.episodes + given.recollection.near_misses:
        source = f"{episode.started_at:%Y-%m-%d}"
        items[str(episode.episode_id)] = Content(source, episode.summary, content_hash(episode.summary))
    guidance = given.guidance
    for match in [*([guidance.match] if guidance.match else []), *guidance.near_misses]:
        procedure = match.procedure
        text = procedure_text(procedure.name, procedure.description, procedure.steps)
        items[str(procedure.procedure_id)] = Content(procedure.name, text, version_hash(procedure.version))
    messages = [message for turn in given.turns for message in turn.messages]
    return Contents(given.agent.system_prompt, given.agent.version, items, messages, given.message)


def _section(section: Section, trace: TurnTrace, contents: Contents) -> InspectedSection:
    text: str | None = None
    state: State = "current"
    pruning = trace.pruning
    if section.name == "system_prompt":
        text = contents.system_prompt
        state = "erased" if text is None else "current" if contents.agent_version == trace.agent_version else "changed"
    elif section.name == "history":
        kept = [
            m for m in contents.messages if pruning.first_seq and pruning.first_seq <= m.seq <= (pruning.last_seq or 0)
        ]
        expected = (pruning.last_seq or 0) - pruning.first_seq + 1 if pruning.first_seq else 0
        text = _transcript(kept) or None
        state = "current" if len(kept) == expected else "erased" if not kept else "changed"
    elif section.name == "message":
        text = contents.message
        state = "erased" if text is None else "current"
    items = [_item(item, contents.items.get(item.item_id)) for item in section.items]
    return InspectedSection(section.name, section.tokens, _percent(section.tokens, trace.budget), text, state, items)


def _item(item: Item, content: Content | None) -> InspectedItem:
    state: State = "erased" if content is None else "current" if content.fingerprint == item.content_hash else "changed"
    return InspectedItem(
        item_id=item.item_id,
        source=content.source if content else None,
        text=content.text if content else None,
        state=state,
        tokens=item.tokens,
        rank=item.score.rank,
        cosine=item.score.cosine,
        relevance=item.score.relevance,
        threshold=item.threshold,
        rule=item.rule,
        included=item.left_out is None,
        left_out=item.left_out,
        decided_by=item.decided_by,
        share=item.score.share,
        cosine_rank=item.score.cosine_rank,
        share_rank=item.score.share_rank,
    )


def _transcript(messages: list[Message]) -> str:
    return "\n".join(f"{message.role}: {text_of(message.content)}" for message in messages)


def _percent(tokens: int, budget: Budget) -> float:
    return round(100 * tokens / budget.max_working_memory_tokens, 1)
