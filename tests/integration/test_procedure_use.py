"""How often procedures are followed, and to the end: counted from the traces of turns and the record of calls."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import TypeAdapter

from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.types import NewMessage, NewTurn, TurnDefaults, text_block
from octopus.procedural.capture_store import PostgresCaptureStore
from octopus.procedural.store import PostgresProcedureStore
from octopus.procedural.types import Procedure, ProcedureStatistics, Step
from octopus.recall import Scope, Score
from octopus.tools.store import PostgresToolStore
from octopus.tools.types import CallOutcome, CallRecord
from octopus.working.types import Item, Section
from tests.support.procedures import procedure

STEPS = [
    Step(1, "Ask."),
    Step(2, "Look.", tool_name="look"),
    Step(3, "Make.", tool_name="make"),
    Step(4, "Tell.", tool_name="tell", is_optional=True),
    Step(5, "Undo.", tool_name="undo", condition="it went wrong"),
]
_SECTIONS = TypeAdapter(list[Section])


class House:
    def __init__(self, database: Database, space: EmbeddingSpace, scope: Scope) -> None:
        self.scope = scope
        self.log = PostgresConversationLog(database)
        self.tools = PostgresToolStore(database)
        self.procedures = PostgresProcedureStore(database, space)
        self.captures = PostgresCaptureStore(database, space)

    async def keep(self, name: str, steps: list[Step]) -> Procedure:
        kept = procedure(name, name, steps=steps)
        assert await self.procedures.create_procedure("acme", kept, [], "created")
        return kept

    async def turn(
        self,
        *followed: Procedure,
        conversation: UUID | None = None,
        calls: list[tuple[str, CallOutcome]] | None = None,
        completed: bool = True,
        missed: Procedure | None = None,
    ) -> UUID:
        """One turn, with these procedures in its prompt, that one only near, and these calls."""
        scope, new = self.scope, uuid4()
        turn = NewTurn(uuid4(), str(uuid4()), conversation, lease_s=30)
        asked = NewMessage(uuid4(), "user", [text_block("go")], 1)
        if conversation is None:
            assert await self.log.open_conversation("acme", scope.user_id, scope.agent_id, new, turn, asked)
        else:
            context = await self.log.load_turn_context(
                "acme", scope.user_id, scope.agent_id, conversation, "-", TurnDefaults("claude", 1.0, 1, 0, 0)
            )
            assert context.conversation is not None
            assert await self.log.claim_turn("acme", conversation, context.conversation.last_seq, turn, asked)
        for name, outcome in calls or []:
            record = CallRecord(
                uuid4(), conversation or new, turn.turn_id, scope.agent_id, scope.user_id, "c", name, {}, "running",
                None, None, None, None, datetime.now(UTC),
            )  # fmt: skip
            await self.tools.begin_call("acme", record)
            await self.tools.finish_call("acme", record.tool_call_id, outcome, 1.0)
        items = [_item(it) for it in followed] + ([_item(missed, "below_min_score")] if missed else [])
        trace = {"sections": _SECTIONS.dump_python([Section("procedure", 9, items)], mode="json")}
        kept: dict[str, Any] = {"completed": completed, "stop_reason": "x", "messages": [], "trace": trace}
        assert await self.log.finish_turn("acme", conversation or new, turn.turn_id, turn.attempt_id, **kept)
        return conversation or new

    async def used(self, it: Procedure) -> ProcedureStatistics | None:
        found = await self.captures.statistics("acme", it.procedure_id)
        return found[0] if found else None


def _item(it: Procedure, left_out: Any = None) -> Item:
    return Item(f"{it.procedure_id}:{it.version}", 9, Score(1), None, "hash", left_out, "pattern")


@pytest.fixture
def house(database: Database, space: EmbeddingSpace, scope: Scope) -> House:
    return House(database, space, scope)


async def test_turns_that_follow_a_procedure_are_counted(house: House) -> None:
    followed, near = await house.keep("a", STEPS), await house.keep("b", STEPS)
    first = await house.turn(followed, missed=near)
    await house.turn(followed, conversation=first)
    await house.turn(followed)
    await house.turn()
    await house.turn(followed, completed=False)

    statistics = await house.used(followed)

    assert statistics is not None
    assert (statistics.matches, statistics.sessions, statistics.completions) == (3, 2, 0)
    assert statistics.last_used_at is not None
    assert await house.used(near) is None
    assert await house.captures.statistics("acme", None) == [statistics]
    assert await house.captures.statistics("umbrella", None) == []


async def test_a_session_completes_a_procedure_with_its_required_tools(house: House) -> None:
    followed = await house.keep("a", STEPS)
    done = await house.turn(followed, calls=[("look", "succeeded")])
    await house.turn(conversation=done, calls=[("make", "succeeded")])  # a later turn that matched nothing itself
    await house.turn(followed, calls=[("look", "succeeded"), ("make", "failed")])
    early = await house.turn(calls=[("look", "succeeded"), ("make", "succeeded")])
    await house.turn(followed, conversation=early)
    statistics = await house.used(followed)
    assert statistics is not None
    assert (statistics.sessions, statistics.completions) == (3, 1)


async def test_without_tools_there_is_nothing_to_go_by(house: House) -> None:
    followed = await house.keep("a", [Step(1, "Ask."), Step(2, "Maybe.", tool_name="x", is_optional=True)])
    await house.turn(followed, calls=[("x", "succeeded")])
    statistics = await house.used(followed)
    assert statistics is not None
    assert (statistics.matches, statistics.completions) == (1, None)


async def test_a_deleted_procedure_does_not_break_a_turn(house: House) -> None:
    followed = await house.keep("a", STEPS)
    assert await house.procedures.delete_procedure("acme", followed.procedure_id)
    await house.turn(followed)
    assert await house.captures.statistics("acme", None) == []
