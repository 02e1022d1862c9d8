"""Memory 1, and the turn that asks the others."""

from __future__ import annotations

from functools import cached_property

from octopus.cloud.observer import PowertoolsObserver
from octopus.cloud.tokens import count_tokens
from octopus.cloud.wiring.episodic import Episodic
from octopus.cloud.wiring.procedural import Procedural
from octopus.cloud.wiring.tools import Tools
from octopus.read_phase import ReadPhase
from octopus.turn import TurnRunner
from octopus.turn_types import TurnPolicy
from octopus.working.folding import Folding
from octopus.working.inspector import Inspector
from octopus.working.store import PostgresFactorStore, PostgresInspectorStore
from octopus.working.token_factor import TokenFactors


class Turns(Tools, Procedural, Episodic):
    """Working memory: the turn and its inspector."""

    @cached_property
    def turns(self) -> TurnRunner:
        return TurnRunner(
            log=self.log,
            read_phase=ReadPhase(
                self.guidance,
                self.knowledge,
                self.episodic,
                deadline_s=self.settings.recall_deadline_ms / 1000,
                observer=self.observer,
            ),
            embedder=self.query_embedder,
            model=self.model,
            toolbox=self.toolbox,
            factors=TokenFactors(PostgresFactorStore(self.database), count_tokens, self.settings.model_token_factor),
            folding=Folding(self.log, self.model),
            observer=self.observer,
            end_session=self.sessions.end_if_requested,
            policy=TurnPolicy(
                model=self.settings.model,
                message_max_chars=self.settings.message_max_chars,
                lease_s=self.settings.turn_lease_s,
                max_s=self.settings.turn_max_s,
                cache_minimum_tokens=self.settings.model_cache_min_tokens,
            ),
        )

    @cached_property
    def inspector(self) -> Inspector:
        return Inspector(PostgresInspectorStore(self.database))

    @cached_property
    def observer(self) -> PowertoolsObserver:
        return PowertoolsObserver()
