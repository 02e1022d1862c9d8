"""A whole turn's own part of the time until the first token: the model answers at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from octopus.cloud.database import Database
from octopus.cloud.tokens import count_tokens
from octopus.conversations.store import PostgresConversationLog
from octopus.embedding import Embedder
from octopus.identity import Principal
from octopus.read_phase import ReadPhase
from octopus.recall import Scope
from octopus.turn import TurnRunner
from octopus.turn_events import Token
from octopus.turn_types import TurnPolicy, TurnRequest
from octopus.working.folding import Folding
from octopus.working.store import PostgresFactorStore
from octopus.working.token_factor import TokenFactors
from tests.support.house import Tools
from tests.support.model import ScriptedModel
from tests.support.observer import RecordingObserver


class WholeTurns:
    """Production but for the model and the tools, of which there is one; every turn opens a conversation."""

    def __init__(self, database: Database, phase: ReadPhase, embedder: Embedder) -> None:
        log, model, observer = PostgresConversationLog(database), ScriptedModel(), RecordingObserver()
        self._runner = TurnRunner(
            log=log,
            read_phase=phase,
            embedder=embedder,
            model=model,
            toolbox=Tools(),
            factors=TokenFactors(PostgresFactorStore(database), count_tokens, 1.25),
            folding=Folding(log, model),
            observer=observer,
            policy=TurnPolicy("bench", 10_000, 30, 30, 1024),
            end_session=_never,
        )

    async def first_token_ms(self, scope: Scope, texts: Sequence[str]) -> list[float]:
        """Milliseconds from the request to the first token, the message's embedding included, one turn at a time."""
        took = []
        caller = Principal(scope.tenant_id, scope.user_id)
        for text in texts:
            began = time.perf_counter()
            first = None
            async for event in await self._runner.begin(caller, TurnRequest(scope.agent_id, text)):
                if first is None and isinstance(event, Token):
                    first = time.perf_counter()
            assert first is not None
            took.append((first - began) * 1e3)
        return took


async def _never(tenant_id: str, conversation_id: UUID) -> None:
    raise AssertionError("nobody asked to end the session")
