"""The second half of a turn: ask the model, run its tools, keep the answer.

A turn runs as a task of its own and hands its events to whoever listens. A listener who goes away cancels it; then, as
after an error, what was answered so far is kept, with its stop reason, and a tool call without a result is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter

from octopus.answer_record import AnswerRecord
from octopus.conversations.ports import ConversationLog
from octopus.conversations.types import Block, text_block
from octopus.errors import Conflict, DatabaseUnavailable, ModelUnavailable, OctopusError
from octopus.model import ChatModel, ModelRequest, Reply, Usage
from octopus.observer import Observer
from octopus.text import made_storable_json
from octopus.tools.builtin import CLOSE_SESSION
from octopus.tools.loop import run_calls
from octopus.tools.ports import ToolBox
from octopus.tools.types import Occasion, ToolCall
from octopus.turn_events import (
    ContextReport,
    Token,
    ToolCalled,
    ToolResulted,
    TurnEnd,
    TurnError,
    TurnEvent,
    TurnStart,
    assembled,
)
from octopus.turn_types import EndSession, PreparedTurn, TurnPolicy
from octopus.working.assembly import assemble
from octopus.working.inspector import InspectorReport, report, shown
from octopus.working.token_factor import TokenFactors
from octopus.working.trace import ToolRecord, TurnTrace

T = TypeVar("T")

MAX_ROUNDS = 10
OUT_OF_ROUNDS = "I was not able to complete this within the allowed number of steps."
KEEP_ATTEMPTS, KEEP_PAUSE_S = 6, 1.0  # how long a database that is away is waited for when the answer is to be kept
_TRACE = TypeAdapter(TurnTrace)
_REPORT = TypeAdapter(InspectorReport)


class AnswerPhase:
    """Runs prepared turns to their end."""

    def __init__(
        self,
        log: ConversationLog,
        model: ChatModel,
        toolbox: ToolBox,
        factors: TokenFactors,
        observer: Observer,
        policy: TurnPolicy,
        end_session: EndSession,
    ) -> None:
        self.log = log
        self.model = model
        self.toolbox = toolbox
        self.factors = factors
        self.observer = observer
        self.policy = policy
        self.end_session = end_session
        self._running: set[asyncio.Task[None]] = set()

    def start(self, turn: PreparedTurn) -> AsyncIterator[TurnEvent]:
        """Begin; the iterator yields the events. Closing it before the end cancels the turn."""
        answering = _Answering(self, turn)
        task = asyncio.create_task(answering.run())
        self._running.add(task)  # the loop itself keeps only weak references
        task.add_done_callback(self._running.discard)
        return answering.events(task)


class _Answering:
    """One running turn."""

    def __init__(self, phase: AnswerPhase, turn: PreparedTurn) -> None:
        self._phase = phase
        self._turn = turn
        self._events: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        self._record = AnswerRecord(turn)
        self._ending = False

    async def events(self, task: asyncio.Task[None]) -> AsyncIterator[TurnEvent]:
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await task
        finally:
            task.cancel()

    async def run(self) -> None:
        """Answer, keep the answer, say how it ended."""
        holding = asyncio.create_task(self._hold(asyncio.current_task()))
        stop_reason, failure = await self._answered()
        self._ending = True
        try:
            completed = failure is None and stop_reason != "cancelled"
            trace = await _undisturbed(self._keep(stop_reason, completed=completed))
            await _undisturbed(self._end_session())
            self._emit(TurnError(failure) if failure else self._end(trace))
        except OctopusError as exc:
            self._emit(TurnError(exc))
        finally:
            holding.cancel()
            self._events.put_nowait(None)

    async def _answered(self) -> tuple[str, OctopusError | None]:
        """Converse; the stop reason, and what went wrong. Nothing escapes: what was said has to be kept."""
        limit = asyncio.timeout(self._phase.policy.max_s)
        try:
            self._announce()
            async with limit:
                return await self._converse(), None
        except asyncio.CancelledError:
            return "cancelled", None
        except OctopusError as exc:
            return "error", exc
        except Exception as exc:
            if limit.expired():
                return "error", ModelUnavailable(f"The turn was ended after {self._phase.policy.max_s} s.")
            self._phase.observer.turn_failed(self._turn.scope.tenant_id, self._turn.turn_id, exc)
            return "error", OctopusError("The turn failed for a reason that is ours; it has been logged.")

    def _emit(self, event: TurnEvent) -> None:
        self._events.put_nowait(event)

    def _announce(self) -> None:
        turn = self._turn
        self._emit(TurnStart(turn.turn_id, turn.conversation_id, continued_from=turn.continued_from))
        self._emit(assembled(turn.memory, turn.stores))
        if turn.inspect:
            account = report(self._record.trace("running"), shown(turn.given), "running", None)
            self._emit(ContextReport(_REPORT.dump_python(account, mode="json")))

    async def _hold(self, turn: asyncio.Task[None] | None) -> None:
        """Keep holding the conversation; a turn that has lost it stops, unless it is just ending."""
        lease_s, me = self._phase.policy.lease_s, self._turn
        while True:
            await asyncio.sleep(lease_s / 3)
            with suppress(OctopusError):
                held = await self._phase.log.renew_lease(
                    me.scope.tenant_id, me.conversation_id, me.turn_id, me.attempt_id, lease_s
                )
                if not held and not self._ending and turn:
                    turn.cancel()

    async def _converse(self) -> str:
        """Rounds of model and tools until the model has nothing more to call; the stop reason."""
        turn = self._turn
        memory, exchange = turn.memory, list[dict[str, Any]]()
        for _ in range(MAX_ROUNDS):
            reply = await self._ask(turn.request(memory, exchange))
            calls = [block for block in reply.content if block["type"] == "tool_use"]
            if reply.stop_reason != "tool_use" or not calls:
                # A call that was begun when the tokens ran out is not run, and must not stay without a result.
                said = [block for block in reply.content if block["type"] == "text"]
                self._record.add("assistant", said, reply.stop_reason)
                return reply.stop_reason
            results = await self._run_tools(calls)
            self._record.add("assistant", reply.content, reply.stop_reason)
            self._record.add("tool", results, None)
            exchange += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
            memory = assemble(
                replace(turn.given, exchange_tokens=turn.tokens.scaled(self._record.tokens)),
                turn.tokens,
                self._phase.policy.cache_minimum_tokens,
            )
        self._say(OUT_OF_ROUNDS)
        self._record.add("assistant", [text_block(OUT_OF_ROUNDS)], "max_rounds")
        return "max_rounds"

    async def _ask(self, request: ModelRequest) -> Reply:
        async with self._phase.observer.span("model"), self._phase.model.stream(request) as stream:
            async for text in stream:
                self._say(text)
            reply = stream.reply()
        if not self._record.messages:
            await self._learn(reply.usage)
        self._record.usage += reply.usage
        return replace(reply, content=[made_storable_json(block) for block in reply.content if _is_kept(block)])

    async def _learn(self, usage: Usage) -> None:
        """Correct the model's token factor from the first call, whose input is exactly what was assembled."""
        with suppress(OctopusError):
            turn = self._turn
            await self._phase.factors.learn(turn.model, turn.tokens.factor, turn.raw_tokens, usage.total_input_tokens)

    async def _run_tools(self, calls: list[Block]) -> list[Block]:
        for call in calls:
            self._emit(ToolCalled(call["id"], call["name"]))
        turn = self._turn
        followed = turn.given.guidance.match
        outcomes = await run_calls(
            self._phase.toolbox,
            turn.scope,
            Occasion(turn.conversation_id, turn.turn_id, followed.procedure if followed else None),
            [ToolCall(call["id"], call["name"], call["input"]) for call in calls],
        )
        for outcome in outcomes:
            elapsed_ms = round(outcome.elapsed_ms, 1)
            self._emit(ToolResulted(outcome.call_id, outcome.name, outcome.is_error, elapsed_ms))
            self._record.tools.append(ToolRecord(outcome.call_id, outcome.name, outcome.is_error, elapsed_ms))
        return [
            {
                "type": "tool_result",
                "tool_use_id": outcome.call_id,
                "content": outcome.content,
                "is_error": outcome.is_error,
            }
            for outcome in outcomes
        ]

    async def _end_session(self) -> None:
        """End the session if its agent has asked for that in this turn. If it fails the sweep will see to it."""
        if any(tool.name == CLOSE_SESSION and not tool.is_error for tool in self._record.tools):
            with suppress(OctopusError):
                await self._phase.end_session(self._turn.scope.tenant_id, self._turn.conversation_id)

    def _say(self, text: str) -> None:
        self._emit(Token(self._record.say(text)))

    async def _keep(self, stop_reason: str, *, completed: bool) -> TurnTrace:
        """Write the answer and the trace. A database that is away for a moment is waited for."""
        self._record.close(stop_reason)
        trace = self._record.trace(stop_reason)
        for attempt in range(1, KEEP_ATTEMPTS + 1):
            try:
                held = await self._phase.log.finish_turn(
                    self._turn.scope.tenant_id,
                    self._turn.conversation_id,
                    self._turn.turn_id,
                    self._turn.attempt_id,
                    completed=completed,
                    stop_reason=stop_reason,
                    messages=self._record.messages,
                    trace=_TRACE.dump_python(trace, mode="json"),
                )
                break
            except DatabaseUnavailable:
                if attempt == KEEP_ATTEMPTS:
                    raise
                await asyncio.sleep(KEEP_PAUSE_S)
        if not held:
            raise Conflict("Another turn took over the conversation; this answer was not kept.")
        self._phase.observer.turn_ended(self._turn.scope.tenant_id, trace)
        return trace

    def _end(self, trace: TurnTrace) -> TurnEnd:
        return TurnEnd(self._record.message_id, trace.stop_reason, asdict(trace.usage), trace.timings.elapsed_ms)


def _is_kept(block: Block) -> bool:
    """What the log keeps of a reply: calls, and text that is not only white space, which the API does not take back."""
    return block["type"] == "tool_use" or (block["type"] == "text" and bool(block["text"].strip()))


async def _undisturbed(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which goes on when the turn is cancelled: what was said is kept in any case."""
    task = asyncio.create_task(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
