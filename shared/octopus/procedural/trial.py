"""What would a message match, and why: drafts are tried as well, but only what is in force is followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from octopus.agents.registry import AgentRegistry
from octopus.embedding import Embedder
from octopus.identity import Principal, Role
from octopus.procedural.match import TriggerSet
from octopus.procedural.ports import ProcedureStore
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.types import MatchRule, Procedure, ProcedureMatch
from octopus.recall import Query, Scope

Verdict = Literal["followed", "outranked", "below_min_score", "pending", "disabled"]

_NEAREST = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A procedure that the message fits by `rule`, and what keeps it from being followed, if anything.

    `start` and `end` are the characters of the message that the trigger found. `verdict` ``outranked``: another one
    goes before it.
    """

    procedure: Procedure
    rule: MatchRule
    verdict: Verdict
    start: int | None = None
    end: int | None = None
    cosine: float | None = None
    relevance: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """What a turn with the message would follow now, and everything that came near; by name, trigger, similarity."""

    enabled: bool
    min_score: float
    match: ProcedureMatch | None
    candidates: list[Candidate]


class ProcedureTrial:
    """Tries messages against the library of one agent, by the same code as a turn."""

    def __init__(
        self, store: ProcedureStore, embedder: Embedder, recall: ProcedureRecall, agents: AgentRegistry
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._recall = recall
        self._agents = agents

    async def run(self, caller: Principal, agent_id: UUID, message: str) -> Trial:
        """Raises `NotFound` for an unknown agent."""
        caller.require(Role.ADMIN)
        config = (await self._agents.get(caller, agent_id)).memory_config
        [vector] = await self._embedder.embed([message])

        async def embedding() -> list[float]:
            return vector

        query = Query(message, embedding())
        guidance = await self._recall.recall(Scope(caller.tenant_id, caller.user_id, agent_id), query, config)
        followed = guidance.match and guidance.match.procedure.procedure_id

        def verdict(procedure: Procedure, relevance: float | None = None) -> Verdict:
            if procedure.procedure_id == followed:
                return "followed"
            if procedure.status == "pending":
                return "pending"
            if not procedure.is_active:
                return "disabled"
            low = relevance is not None and relevance < config.procedural_min_score
            return "below_min_score" if low else "outranked"

        triggers = TriggerSet(await self._store.load_drafts(caller.tenant_id, agent_id))
        named = triggers.named(message)
        candidates = [Candidate(named, "name", verdict(named))] if named else []
        candidates += [
            Candidate(hit.procedure, "pattern", verdict(hit.procedure), hit.start, hit.end)
            for hit in triggers.hits(message)
        ]
        near = await self._store.nearest_procedures(caller.tenant_id, agent_id, vector, _NEAREST, among="drafts")
        for procedure, cosine in near:
            relevance = self._embedder.calibration.relevance(cosine)
            candidates.append(
                Candidate(procedure, "embedding", verdict(procedure, relevance), cosine=cosine, relevance=relevance)
            )
        return Trial(config.procedural_enabled, config.procedural_min_score, guidance.match, candidates)
