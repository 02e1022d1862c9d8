"""One turn, top to bottom: read phase, model, write phase.

    load the log  ─┐
    embed message ─┤→ recall three memories → assemble → user's message durable → model ⇄ tools → answer durable
    match patterns ┘

`TurnRunner.begin` does everything up to the point where the user's message is durable, and raises an `OctopusError`
if it does not come so far; then nothing was written. `octopus.answer` is the rest.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, replace
from uuid import uuid4

from octopus.agents.types import Agent
from octopus.answer import AnswerPhase
from octopus.conversations.ports import ConversationLog
from octopus.conversations.types import (
    Conversation,
    NewMessage,
    NewTurn,
    TurnContext,
    TurnDefaults,
    text_block,
)
from octopus.embedding import Embedder
from octopus.errors import BodyTooLarge, InvalidInput, NotFound, OctopusError, TurnInProgress
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig
from octopus.model import ChatModel
from octopus.observer import Observer
from octopus.read_phase import ReadPhase, Recalled
from octopus.recall import Query, Scope
from octopus.relevance import Vector
from octopus.replay import replay, used_already
from octopus.text import storable
from octopus.tools.ports import ToolBox
from octopus.tools.types import ToolSpec
from octopus.turn_events import TurnEvent
from octopus.turn_types import EndSession, PreparedTurn, TurnPolicy, TurnRequest
from octopus.working.assembly import Ingredients, RunningSummary, assemble
from octopus.working.folding import Folding
from octopus.working.pruning import LogExtent, whole_turns
from octopus.working.token_factor import TokenFactors
from octopus.working.types import Tokens, content_tokens

MESSAGE_ID_MAX_CHARS = 200
RETRY_AFTER_S = 2
FOLDING_S = 20.0  # the turn waits for its summarizer before the first token
COUNTING_S = 2.0
NEAR_LIMIT = 0.9  # of the budget; beyond it the provider is asked for its own count


class TurnRunner:
    """Takes turns; any execution environment can serve any turn of any conversation."""

    def __init__(
        self,
        *,
        log: ConversationLog,
        read_phase: ReadPhase,
        embedder: Embedder,
        model: ChatModel,
        toolbox: ToolBox,
        factors: TokenFactors,
        folding: Folding,
        observer: Observer,
        policy: TurnPolicy,
        end_session: EndSession,
    ) -> None:
        self._log = log
        self._read_phase = read_phase
        self._embedder = embedder
        self._model = model
        self._toolbox = toolbox
        self._factors = factors
        self._folding = folding
        self._policy = policy
        self._answer_phase = AnswerPhase(log, model, toolbox, factors, observer, policy, end_session)

    async def begin(self, caller: Principal, request: TurnRequest) -> AsyncIterator[TurnEvent]:
        """The events of the turn, the first of which says that the user's message is durable.

        Raises `NotFound` (agent, conversation), `InvalidInput`, `BudgetExceeded`, `TurnInProgress`, `Conflict` (a
        message_id that was used for another message), `MemoryUnavailable` and `DatabaseUnavailable`.
        """
        arrived = time.perf_counter()
        self._check(caller, request)
        scope = Scope(caller.tenant_id, caller.user_id, request.agent_id)
        request = replace(request, message_id=request.message_id or str(uuid4()))
        query = Query(request.message, self._embed(request.message))
        try:
            context = await self._load(scope, request)
            loaded = time.perf_counter()
            agent = self._found(context, request)
            if context.earlier and (earlier := await replay(self._log, scope.tenant_id, context, request)):
                return earlier
            config = agent.memory_config
            model = agent.model or self._policy.model
            tokens = self._factors.tokens(context.token_factor)
            recalled, tools = await asyncio.gather(
                self._read_phase.read(scope, query, config), self._toolbox.specs(scope)
            )
            read = time.perf_counter()
            conversation = _still_open(context)
            given = _ingredients(agent, request, context, conversation, recalled, tools, tokens)
            prepared = PreparedTurn(
                scope=scope,
                turn_id=context.earlier.turn_id if context.earlier else uuid4(),
                attempt_id=uuid4(),
                conversation_id=conversation.conversation_id if conversation else uuid4(),
                continued_from=request.conversation_id if conversation is None else None,
                model=model,
                given=given,
                memory=assemble(given, tokens, self._policy.cache_minimum_tokens),
                tools=tools,
                tokens=tokens,
                stores=recalled.reports,
                arrived=arrived,
                loaded_ms=(loaded - arrived) * 1000,
                read_ms=(read - loaded) * 1000,
                assemble_ms=0.0,
                inspect=request.inspect,
            )
            prepared = await self._assemble(prepared, conversation)
            prepared = replace(prepared, assemble_ms=(time.perf_counter() - read) * 1000)
            await self._make_durable(prepared, request, context, conversation)
        finally:
            query.cancel()
        return self._answer_phase.start(prepared)

    def _check(self, caller: Principal, request: TurnRequest) -> None:
        if request.inspect:
            caller.require(Role.DEBUG)
        if not request.message.strip():
            raise InvalidInput("message: must not be empty.", field="message")
        if len(request.message) > self._policy.message_max_chars:
            raise BodyTooLarge(
                f"message: has {len(request.message)} characters; at most {self._policy.message_max_chars} are taken. "
                "Upload long text as a document instead.",
                field="message",
            )
        if request.message_id is not None and not 1 <= len(request.message_id) <= MESSAGE_ID_MAX_CHARS:
            raise InvalidInput(f"message_id: must have 1 to {MESSAGE_ID_MAX_CHARS} characters.", field="message_id")
        for field in ("message", "message_id"):
            try:
                storable(getattr(request, field) or "")
            except ValueError as exc:
                raise InvalidInput(f"{field}: {exc}.", field=field) from exc

    async def _embed(self, text: str) -> Vector:
        return (await self._embedder.embed([text]))[0]

    async def _load(self, scope: Scope, request: TurnRequest) -> TurnContext:
        assert request.message_id
        config = MemoryConfig()
        return await self._log.load_turn_context(
            scope.tenant_id,
            scope.user_id,
            scope.agent_id,
            request.conversation_id,
            request.message_id,
            TurnDefaults(
                self._policy.model,
                self._factors.initial,
                config.max_working_memory_tokens,
                config.output_reserve_tokens,
                config.min_history_turns,
            ),
        )

    @staticmethod
    def _found(context: TurnContext, request: TurnRequest) -> Agent:
        if context.agent is None:
            raise NotFound(f"There is no agent {request.agent_id}.")
        if context.earlier and context.conversation is None:
            raise used_already(request)
        if context.conversation is None and request.conversation_id:
            raise NotFound(f"You have no conversation {request.conversation_id} with agent {request.agent_id}.")
        return context.agent

    async def _assemble(self, turn: PreparedTurn, conversation: Conversation | None) -> PreparedTurn:
        """Working memory, folded where the strategy says so, and counted by the provider where it is tight."""
        if conversation and turn.given.turns and turn.given.agent.memory_config.pruning_strategy == "summarize":
            turn = await self._folded(turn, conversation)
        budget = turn.memory.budget
        if budget.used >= NEAR_LIMIT * budget.available:
            turn = await self._counted(turn)
        return turn

    def _with_memory(self, turn: PreparedTurn) -> PreparedTurn:
        return replace(turn, memory=assemble(turn.given, turn.tokens, self._policy.cache_minimum_tokens))

    async def _folded(self, turn: PreparedTurn, conversation: Conversation) -> PreparedTurn:
        """Fold what was pruned into the running summary; if that fails or is slow the turn goes on as with `fifo`."""
        summary, first_seq = turn.given.summary, turn.memory.pruning.first_seq
        through = first_seq - 1 if first_seq else turn.given.turns[-1].messages[-1].seq
        if through <= (summary.through if summary else 0):
            return turn
        try:
            async with asyncio.timeout(FOLDING_S):
                extended = await self._folding.fold(
                    turn.scope.tenant_id,
                    conversation.conversation_id,
                    summary,
                    through,
                    turn.tokens,
                    redact=turn.given.agent.memory_config.pii_redaction,
                )
        except (TimeoutError, OctopusError):
            pruning = replace(turn.memory.pruning, summary_failed=True)
            return replace(turn, memory=replace(turn.memory, pruning=pruning))
        return self._with_memory(replace(turn, given=turn.given.after(extended)))

    async def _counted(self, turn: PreparedTurn) -> PreparedTurn:
        """Near the limit an estimate is not enough: ask the provider, and prune again if it counts more than we did."""
        try:
            async with asyncio.timeout(COUNTING_S):
                exact = await self._model.count_tokens(turn.request(turn.memory))
                await self._factors.learn(turn.model, turn.tokens.factor, turn.raw_tokens, exact)
        except (TimeoutError, OctopusError):
            return turn
        if exact <= turn.memory.budget.used:
            return turn
        return self._with_memory(replace(turn, tokens=replace(turn.tokens, factor=exact / turn.raw_tokens)))

    async def _make_durable(
        self, turn: PreparedTurn, request: TurnRequest, context: TurnContext, conversation: Conversation | None
    ) -> None:
        """Write the user's message and hold the conversation, or raise `TurnInProgress`."""
        assert request.message_id
        tenant_id, lease_s = turn.scope.tenant_id, self._policy.lease_s
        new = NewTurn(turn.turn_id, request.message_id, request.conversation_id, lease_s, turn.attempt_id)
        content = [text_block(request.message)]
        message = NewMessage(uuid4(), "user", content, content_tokens(turn.tokens.raw, content))
        if context.earlier:
            held = await self._log.reclaim_turn(tenant_id, context.earlier, turn.attempt_id, lease_s)
        elif conversation is None:
            held = await self._log.open_conversation(
                tenant_id, turn.scope.user_id, turn.scope.agent_id, turn.conversation_id, new, message
            )
        else:
            held = await self._log.claim_turn(
                tenant_id, conversation.conversation_id, conversation.last_seq, new, message
            )
        if not held:
            raise TurnInProgress(retry_after=RETRY_AFTER_S)


def _still_open(context: TurnContext) -> Conversation | None:
    """The conversation to write to; None when there is none yet, or it has ended and another is to be opened."""
    conversation = context.conversation
    return conversation if conversation and conversation.status == "active" else None


def _ingredients(
    agent: Agent,
    request: TurnRequest,
    context: TurnContext,
    conversation: Conversation | None,
    recalled: Recalled,
    tools: Sequence[ToolSpec],
    tokens: Tokens,
) -> Ingredients:
    given = Ingredients(
        agent=agent,
        message=request.message,
        guidance=recalled.guidance,
        knowledge=recalled.knowledge,
        recollection=recalled.recollection,
        turns=[],
        extent=LogExtent(0, 0),
        tool_tokens=tokens.count(json.dumps([asdict(tool) for tool in tools])) if tools else 0,
    )
    if conversation is None:
        return given
    before = [m for m in context.history if context.earlier is None or m.seq < context.earlier.user_seq]
    later = sum(m.token_count for m in context.history) - sum(m.token_count for m in before)
    given = replace(
        given,
        turns=whole_turns(before),
        extent=LogExtent(conversation.total_tokens - later, conversation.turn_count - bool(context.earlier)),
    )
    if conversation.summary:
        return given.after(RunningSummary(conversation.summary, conversation.summary_through))
    return given
