"""Learn from a session that ended well: a candidate for administrators to review, never matched before they approve."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from uuid import UUID

from octopus.agents.ports import AgentStore
from octopus.conversations.sessions import SessionStore
from octopus.conversations.types import Message, text_of
from octopus.embedding import Embedder
from octopus.errors import Conflict, InvalidInput, ModelReplyInvalid
from octopus.events import EventBus
from octopus.memory_config import MemoryConfig
from octopus.model import ChatModel
from octopus.procedural.draft import embedded_texts, written_by
from octopus.procedural.ports import CaptureStore, ProcedureStore
from octopus.procedural.proposal import INSTRUCTIONS, Proposal, borne_out, drafted
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.session import MadeCall, longest_run, made_calls, request_of, transcript, without_personal_data
from octopus.procedural.types import Capture, CaptureOutcome, Procedure
from octopus.recall import Query, Scope
from octopus.relevance import Vector
from octopus.text import made_storable

log = logging.getLogger(__name__)

# The reference system's: fewer calls are no procedure.
FEWEST_CALLS = 3
MOST_MESSAGES = 2_000
REPLY_TOKENS = 4_000
ATTEMPTS = 2
NEAREST = 5


@dataclass(frozen=True, slots=True)
class _Work:
    """A session that shows a way to work: what was asked for, and the calls that did it."""

    scope: Scope
    config: MemoryConfig
    conversation_id: UUID
    messages: list[Message]
    run: list[MadeCall]
    request: str


class ProcedureCapture:
    """Judges each ended session once, and only where the agent learns and enough was done."""

    def __init__(
        self,
        captures: CaptureStore,
        procedures: ProcedureStore,
        recall: ProcedureRecall,
        sessions: SessionStore,
        agents: AgentStore,
        model: ChatModel,
        embedder: Embedder,
        bus: EventBus,
    ) -> None:
        self._captures = captures
        self._procedures = procedures
        self._recall = recall
        self._sessions = sessions
        self._agents = agents
        self._model = model
        self._embedder = embedder
        self._bus = bus

    async def capture(self, tenant_id: str, conversation_id: UUID) -> CaptureOutcome | None:
        """The verdict on a session that has ended; None when there was nothing to judge.

        May be repeated: a session is judged once, and its candidate announced (``ProcedureCaptured``) at least once.
        Raises what the model, the embedder, the bus or the database raise; call it again then.
        """
        verdict = await self._captures.get_capture(tenant_id, conversation_id)
        if verdict is None:
            work = await self._work(tenant_id, conversation_id)
            if work is None:
                return None
            verdict = await self._settle(work, *await self._judge(work))
        if verdict is None:  # the session was erased meanwhile
            return None
        if verdict.outcome == "captured" and verdict.procedure_id and not verdict.announced_at:
            await self._announce(tenant_id, verdict)
        return verdict.outcome

    async def _work(self, tenant_id: str, conversation_id: UUID) -> _Work | None:
        session = await self._sessions.get_session(tenant_id, None, conversation_id)
        if session is None or session.status != "ended":
            return None
        agent = await self._agents.get_agent(tenant_id, session.agent_id)
        if agent is None or not (agent.memory_config.procedural_enabled and agent.memory_config.procedural_learning):
            return None
        after = max(0, session.last_seq - MOST_MESSAGES)
        messages = await self._sessions.session_messages(tenant_id, conversation_id, after, MOST_MESSAGES)
        if agent.memory_config.pii_redaction:
            messages = without_personal_data(messages)
        run = longest_run(made_calls(messages))
        request = request_of(messages, run) if len(run) >= FEWEST_CALLS else None
        if request is None:
            return None
        scope = Scope(tenant_id, session.user_id, session.agent_id)
        since = [message for message in messages if message.seq >= request.seq]
        return _Work(scope, agent.memory_config, conversation_id, since, run, text_of(request.content))

    async def _judge(self, work: _Work) -> tuple[Capture, Procedure | None]:
        """The verdict, and the candidate if there is to be a new one."""
        verdict = Capture(work.conversation_id, "not understood")
        guidance = await self._recall.recall(work.scope, Query(work.request, self._vector(work.request)), work.config)
        if guidance.match:
            return replace(verdict, outcome="covered", procedure_id=guidance.match.procedure.procedure_id), None
        proposal = await self._propose(work)
        if proposal is None:
            return verdict, None
        thanks = borne_out(proposal.evidence, work.messages, after_seq=work.run[-1].seq)
        if proposal.outcome != "positive" or thanks is None:
            return replace(verdict, outcome="not positive"), None
        verdict = replace(verdict, quote=made_storable(thanks.quote), quote_seq=thanks.message)
        try:
            draft = drafted(proposal, work.scope.agent_id, work.run, work.request, thanks.quote)
        except (ValueError, InvalidInput):
            return verdict, None
        author = f"agent:{work.scope.agent_id}"
        candidate = written_by(author, draft, "pending", source_conversation_id=work.conversation_id)
        like = await self._like(work, candidate)
        if like is None:
            return replace(verdict, outcome="captured"), candidate
        covered = like.status == "approved" and like.is_active
        return replace(verdict, outcome="covered" if covered else "evidence", procedure_id=like.procedure_id), None

    async def _propose(self, work: _Work) -> Proposal | None:
        text = f"<session>\n{transcript(work.messages, work.run)}\n</session>"
        for _ in range(ATTEMPTS):
            try:
                return await self._model.structured(
                    model=None,
                    system=INSTRUCTIONS,
                    messages=[{"role": "user", "content": [{"type": "text", "text": text}]}],
                    schema=Proposal,
                    max_tokens=REPLY_TOKENS,
                )
            except ModelReplyInvalid:
                log.warning("the proposal for conversation %s does not validate", work.conversation_id)
        return None

    async def _like(self, work: _Work, candidate: Procedure) -> Procedure | None:
        """A procedure for the same purpose with the same tools: near enough to be followed in its stead."""
        near = await self._procedures.nearest_procedures(
            work.scope.tenant_id, work.scope.agent_id, await self._vector(candidate.description), NEAREST, "all"
        )
        bound = self._embedder.calibration.cosine(work.config.procedural_min_score)
        alike = [found for found, cosine in near if cosine >= bound and _tools(found) == _tools(candidate)]
        return alike[0] if alike else None

    async def _settle(self, work: _Work, verdict: Capture, candidate: Procedure | None) -> Capture | None:
        """Keep the verdict, or find the one that somebody else has come to at the same time."""
        tenant_id = work.scope.tenant_id
        if candidate is None:
            await self._captures.put_capture(tenant_id, verdict)
        else:
            vectors = await self._embedder.embed(embedded_texts(candidate))
            try:
                await self._captures.put_capture(tenant_id, verdict, candidate, vectors)
            except Conflict:  # the name is taken, by something else
                renamed = replace(candidate, name=f"{candidate.name}_{work.conversation_id.hex[:8]}")
                await self._captures.put_capture(tenant_id, verdict, renamed, vectors)
        return await self._captures.get_capture(tenant_id, work.conversation_id)

    async def _announce(self, tenant_id: str, verdict: Capture) -> None:
        detail = {
            "tenant_id": tenant_id,
            "procedure_id": str(verdict.procedure_id),
            "conversation_id": str(verdict.conversation_id),
        }
        await self._bus.publish("ProcedureCaptured", detail)
        await self._captures.note_announced(tenant_id, verdict.conversation_id)

    async def _vector(self, text: str) -> Vector:
        return (await self._embedder.embed([text]))[0]


def _tools(procedure: Procedure) -> set[str]:
    return {step.tool_name for step in procedure.steps if step.tool_name}
