"""Memory 4."""

from __future__ import annotations

from functools import cached_property

from octopus.cloud.wiring.conversations import Conversations
from octopus.procedural.capture import ProcedureCapture
from octopus.procedural.capture_store import PostgresCaptureStore
from octopus.procedural.library import ProcedureLibrary
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.review import ProcedureReview
from octopus.procedural.store import PostgresProcedureStore
from octopus.procedural.trial import ProcedureTrial


class Procedural(Conversations):
    """Procedural memory: recall, library, review, capture."""

    @cached_property
    def procedure_store(self) -> PostgresProcedureStore:
        return PostgresProcedureStore(self.database, self.space)

    @cached_property
    def guidance(self) -> ProcedureRecall:
        return ProcedureRecall(self.procedure_store, self.embedder)

    @cached_property
    def procedures(self) -> ProcedureLibrary:
        return ProcedureLibrary(self.procedure_store, self.embedder, four_eyes=self.settings.procedures_four_eyes)

    @cached_property
    def capture_store(self) -> PostgresCaptureStore:
        return PostgresCaptureStore(self.database, self.space)

    @cached_property
    def procedure_review(self) -> ProcedureReview:
        return ProcedureReview(self.procedures, self.capture_store, self.session_store)

    @cached_property
    def procedure_capture(self) -> ProcedureCapture:
        return ProcedureCapture(
            self.capture_store,
            self.procedure_store,
            self.guidance,
            self.session_store,
            self.agent_store,
            self.model,
            self.embedder,
            self.bus,
        )

    @cached_property
    def procedure_trial(self) -> ProcedureTrial:
        return ProcedureTrial(self.procedure_store, self.query_embedder, self.guidance, self.agents)
