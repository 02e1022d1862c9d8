"""Learning from sessions: judged once, borne out by the user's words, never followed before it is approved."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from octopus.agents.store import PostgresAgentStore
from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.conversations.session_store import PostgresSessionStore
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.types import Block, NewMessage, NewTurn, text_block
from octopus.errors import Conflict, Forbidden, ModelReplyInvalid, ModelUnavailable, Unavailable
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig
from octopus.procedural.capture import ProcedureCapture
from octopus.procedural.capture_store import PostgresCaptureStore
from octopus.procedural.draft import ProcedureChanges
from octopus.procedural.library import ProcedureLibrary
from octopus.procedural.ports import Filter
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.review import ProcedureReview
from octopus.procedural.store import PostgresProcedureStore
from octopus.procedural.types import Capture, Procedure
from octopus.recall import Query, Scope
from tests.support.embedder import WordEmbedder
from tests.support.procedures import draft

ROOT = Principal("acme", "root", frozenset({Role.ADMIN}))
BOSS = Principal("acme", "boss", frozenset({Role.ADMIN}))
LEARNING = {"procedural_learning": True}
REQUEST = "Please onboard the vendor TechCorp"
CALLS = [("vendor_lookup", "TechCorp"), ("vendor_create", "TechCorp"), ("send_mail", "TechCorp")]
PROPOSAL = {
    "outcome": "positive",
    "evidence": [{"message": 5, "quote": "Perfect, thank you!"}],
    "name": "onboard_vendor",
    "description": "Takes a new vendor on.",
    "trigger_pattern": "onboard.*vendor",
    "example_phrases": ["add a new vendor"],
    "steps": [
        {"call": 1, "instruction": "Look TechCorp up."},
        {"call": 2, "instruction": "Create it."},
        {"call": 3, "instruction": "Tell them."},
    ],
}


class Bus:
    def __init__(self) -> None:
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.broken = False

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        if self.broken:
            raise Unavailable
        self.events.append((detail_type, detail))


class Model:
    """Says what the test has prepared, the last thing for ever."""

    def __init__(self) -> None:
        self.replies: list[Any] = [PROPOSAL]
        self.asked: list[str] = []

    def stream(self, request: Any) -> Any:
        raise NotImplementedError

    async def count_tokens(self, request: Any) -> int:
        raise NotImplementedError

    async def structured(self, *, messages: list[dict[str, Any]], schema: type[BaseModel], **_: Any) -> Any:
        self.asked.append(messages[0]["content"][0]["text"])
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return schema.model_validate(reply)


class House:
    """Everything around one agent that learns."""

    def __init__(self, database: Database, space: EmbeddingSpace, embedder: WordEmbedder, agent: Agent) -> None:
        self.database = database
        self.embedder = embedder
        self.agent = agent
        self.scope = Scope("acme", "ada", agent.agent_id)
        self.log = PostgresConversationLog(database)
        self.sessions = PostgresSessionStore(database)
        self.store = PostgresProcedureStore(database, space)
        self.captures = PostgresCaptureStore(database, space)
        self.library = ProcedureLibrary(self.store, embedder)
        self.memory = ProcedureRecall(self.store, embedder)
        self.review = ProcedureReview(self.library, self.captures, self.sessions)
        self.model = Model()
        self.bus = Bus()
        self.learning = ProcedureCapture(
            self.captures,
            self.store,
            self.memory,
            self.sessions,
            PostgresAgentStore(database),
            self.model,
            embedder,
            self.bus,
        )

    async def hold(
        self,
        request: str = REQUEST,
        calls: Sequence[tuple[str, str]] = CALLS,
        thanks: str = "Perfect, thank you!",
        *,
        failing: int | None = None,
        ended: bool = True,
    ) -> UUID:
        """A session of two turns: the work, and what the user said to it."""
        conversation = uuid4()
        who = self.scope.tenant_id, self.scope.user_id, self.scope.agent_id
        uses: list[Block] = [
            {"type": "tool_use", "id": f"c{n}", "name": name, "input": {"vendor_name": value}}
            for n, (name, value) in enumerate(calls)
        ]
        results: list[Block] = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": "ok", "is_error": n == failing}
            for n, use in enumerate(uses)
        ]
        work = NewTurn(uuid4(), f"{conversation}", None, lease_s=30)
        assert await self.log.open_conversation(*who, conversation, work, message("user", text_block(request)))
        await self.finish(conversation, work, message("assistant", *uses), message("tool", *results), says("Done."))
        last = NewTurn(uuid4(), "m2", conversation, lease_s=30)
        assert await self.log.claim_turn("acme", conversation, 4, last, message("user", text_block(thanks)))
        await self.finish(conversation, last, says("You are welcome."))
        if ended:
            assert await self.sessions.end_session("acme", None, conversation, "UserClosed")
        return conversation

    async def finish(self, conversation: UUID, turn: NewTurn, *messages: NewMessage) -> None:
        kept: dict[str, Any] = {"completed": True, "stop_reason": "end_turn", "messages": messages, "trace": {}}
        assert await self.log.finish_turn("acme", conversation, turn.turn_id, turn.attempt_id, **kept)

    async def library_of(self) -> list[Procedure]:
        return (await self.library.page(ROOT, Filter())).items

    async def follows(self, text: str) -> str | None:
        async def embedding() -> list[float]:
            return (await self.embedder.embed([text]))[0]

        guidance = await self.memory.recall(self.scope, Query(text, embedding()), MemoryConfig())
        return guidance.match.procedure.name if guidance.match else None


def message(role: Any, *content: Block) -> NewMessage:
    return NewMessage(uuid4(), role, list(content), 1)


def says(text: str) -> NewMessage:
    return message("assistant", text_block(text))


@pytest.fixture
async def house(database: Database, space: EmbeddingSpace, embedder: WordEmbedder) -> House:
    agent = await PostgresAgentStore(database).create_agent("acme", "learner", "", "You learn.", None, LEARNING)
    return House(database, space, embedder, agent)


async def test_a_candidate_is_followed_only_when_it_has_been_approved(house: House) -> None:
    conversation = await house.hold()

    assert await house.learning.capture("acme", conversation) == "captured"

    [candidate] = await house.library_of()
    assert (candidate.name, candidate.status, candidate.version) == ("onboard_vendor", "pending", 1)
    assert candidate.agent_id == house.agent.agent_id
    assert candidate.created_by == f"agent:{house.agent.agent_id}"
    assert candidate.source_conversation_id == conversation
    assert [(s.order, s.instruction, s.tool_name) for s in candidate.steps] == [
        (1, "Look {{vendor_name}} up.", "vendor_lookup"),
        (2, "Create it.", "vendor_create"),
        (3, "Tell them.", "send_mail"),
    ]
    assert await house.follows("onboard the vendor Acme") is None

    await house.library.approve(ROOT, candidate.procedure_id, "looks right")
    assert await house.follows("onboard the vendor Acme") == "onboard_vendor"
    assert "call 2: vendor_create" in house.model.asked[0]


async def test_the_reviewer_sees_the_conversation_beside_the_steps(house: House) -> None:
    conversation = await house.hold()
    await house.learning.capture("acme", conversation)
    [candidate] = await house.library_of()

    review = await house.review.of(ROOT, candidate.procedure_id)

    assert review.procedure == candidate
    assert [(e.conversation_id, e.outcome, e.quote, e.quote_seq) for e in review.evidence] == [
        (conversation, "captured", "Perfect, thank you!", 5)
    ]
    assert [m.seq for m in review.conversation] == [1, 2, 3, 4, 5, 6]
    assert review.statistics.matches == 0
    [version] = await house.library.versions(ROOT, candidate.procedure_id)
    assert version.change == "captured"
    with pytest.raises(Forbidden):
        await house.review.of(Principal("acme", "ada"), candidate.procedure_id)


async def test_a_session_captured_twice_gives_one_candidate_and_one_event(house: House) -> None:
    conversation = await house.hold()
    outcomes = await asyncio.gather(*(house.learning.capture("acme", conversation) for _ in range(4)))
    outcomes.append(await house.learning.capture("acme", conversation))
    assert set(outcomes) == {"captured"}
    [candidate] = await house.library_of()
    assert {kind for kind, _ in house.bus.events} == {"ProcedureCaptured"}
    assert house.bus.events[-1][1] == {
        "tenant_id": "acme",
        "procedure_id": str(candidate.procedure_id),
        "conversation_id": str(conversation),
    }
    asked, told = len(house.model.asked), len(house.bus.events)
    await house.learning.capture("acme", conversation)
    assert (len(house.model.asked), len(house.bus.events)) == (asked, told)


async def test_a_bus_that_is_away_is_told_later(house: House) -> None:
    conversation = await house.hold()
    house.bus.broken = True
    with pytest.raises(Unavailable):
        await house.learning.capture("acme", conversation)
    house.bus.broken = False
    assert await house.learning.capture("acme", conversation) == "captured"
    assert len(house.bus.events) == 1
    assert len(await house.library_of()) == 1


async def test_a_near_duplicate_is_further_evidence(house: House) -> None:
    first, second = await house.hold(), await house.hold("Onboard vendor Acme, please", thanks="Perfect, thank you!")
    assert await house.learning.capture("acme", first) == "captured"
    house.model.replies = [PROPOSAL | {"name": "new_vendor", "trigger_pattern": "onboard vendor"}]

    assert await house.learning.capture("acme", second) == "evidence"

    [candidate] = await house.library_of()
    review = await house.review.of(ROOT, candidate.procedure_id)
    assert [(e.conversation_id, e.outcome) for e in review.evidence] == [(first, "captured"), (second, "evidence")]
    assert len(house.bus.events) == 1


async def test_what_was_rejected_is_not_proposed_again(house: House) -> None:
    first, second = await house.hold(), await house.hold()
    await house.learning.capture("acme", first)
    [candidate] = await house.library_of()
    await house.library.reject(ROOT, candidate.procedure_id, "too trivial")
    assert await house.learning.capture("acme", second) == "evidence"
    assert [it.status for it in await house.library_of()] == ["rejected"]


async def test_the_same_purpose_with_other_tools_is_another_procedure(house: House) -> None:
    first = await house.hold()
    second = await house.hold(calls=[("erp", "x"), ("crm", "y"), ("erp", "z")])
    await house.learning.capture("acme", first)
    house.model.replies = [PROPOSAL | {"steps": []}]
    assert await house.learning.capture("acme", second) == "captured"
    names = {it.name for it in await house.library_of()}
    assert names == {"onboard_vendor", f"onboard_vendor_{second.hex[:8]}"}


async def test_what_an_approved_procedure_covers_is_not_captured(house: House) -> None:
    await house.library.create(ROOT, draft("vendors", "onboard.*vendor", house.agent.agent_id))
    assert await house.learning.capture("acme", await house.hold()) == "covered"
    assert house.model.asked == []
    assert len(await house.library_of()) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "negative"},
        {"outcome": "unclear"},
        {"evidence": []},
        {"evidence": [{"message": 5, "quote": "Best service ever"}]},
        {"evidence": [{"message": 1, "quote": "Please onboard"}]},
        {"evidence": [{"message": 6, "quote": "You are welcome."}]},
    ],
)
async def test_without_the_users_own_words_nothing_is_captured(house: House, changes: dict[str, Any]) -> None:
    house.model.replies = [PROPOSAL | changes]
    conversation = await house.hold()
    assert await house.learning.capture("acme", conversation) == "not positive"
    assert await house.library_of() == []
    assert await house.captures.get_capture("acme", conversation) is not None


async def test_too_little_work_is_not_even_judged(house: House) -> None:
    for conversation in (await house.hold(calls=CALLS[:2]), await house.hold(failing=1)):
        assert await house.learning.capture("acme", conversation) is None
    assert await house.learning.capture("acme", await house.hold(ended=False)) is None
    assert await house.learning.capture("umbrella", await house.hold()) is None
    assert await house.learning.capture("acme", uuid4()) is None
    assert house.model.asked == []


async def test_an_agent_learns_only_if_it_is_told_to(house: House, agent: Agent) -> None:
    house.scope = Scope("acme", "ada", agent.agent_id)
    assert await house.learning.capture("acme", await house.hold()) is None
    assert house.model.asked == []


async def test_a_reply_that_does_not_validate_is_asked_for_once_more(house: House) -> None:
    house.model.replies = [ModelReplyInvalid(), PROPOSAL]
    assert await house.learning.capture("acme", await house.hold()) == "captured"
    house.model.replies = [ModelReplyInvalid()]
    conversation = await house.hold("Close the books", calls=[("a", "x"), ("b", "y"), ("c", "z")])
    assert await house.learning.capture("acme", conversation) == "not understood"


async def test_a_model_that_is_away_leaves_the_session_to_be_judged(house: House) -> None:
    conversation = await house.hold()
    house.model.replies = [ModelUnavailable(), PROPOSAL]
    with pytest.raises(ModelUnavailable):
        await house.learning.capture("acme", conversation)
    assert await house.learning.capture("acme", conversation) == "captured"


async def test_an_agent_that_redacts_learns_without_the_people(house: House) -> None:
    house.agent = await PostgresAgentStore(house.database).create_agent(
        "acme", "discreet", "", "You.", None, LEARNING | {"pii_redaction": True}
    )
    house.scope = Scope("acme", "ada", house.agent.agent_id)
    thanks = "Perfect, thank you! Write to jane@techcorp.example."
    house.model.replies = [PROPOSAL | {"evidence": [{"message": 5, "quote": "Perfect, thank you! Write to [EMAIL]."}]}]
    assert await house.learning.capture("acme", await house.hold(thanks=thanks)) == "captured"
    [asked], [candidate] = house.model.asked, await house.library_of()
    assert "jane@techcorp.example" not in asked
    assert (await house.review.of(ROOT, candidate.procedure_id)).evidence[0].quote == (
        "Perfect, thank you! Write to [EMAIL]."
    )


async def test_evidence_goes_with_the_conversation(house: House) -> None:
    conversation = await house.hold()
    await house.learning.capture("acme", conversation)
    [candidate] = await house.library_of()
    async with house.database.transaction("acme") as tx:
        await tx.run("delete from conversations where conversation_id = %(c)s", {"c": conversation})
    review = await house.review.of(ROOT, candidate.procedure_id)
    assert (review.evidence, review.conversation) == ([], [])
    assert not await house.captures.put_capture("acme", Capture(conversation, "not positive"))


async def test_under_four_eyes_authors_do_not_approve(house: House) -> None:
    library = ProcedureLibrary(house.store, house.embedder, four_eyes=True)
    created = await library.create(ROOT, draft("reset", "reset", house.agent.agent_id))
    assert (created.status, created.reviewed_by) == ("pending", None)
    with pytest.raises(Forbidden, match="another administrator"):
        await library.approve(ROOT, created.procedure_id)
    approved = await library.approve(BOSS, created.procedure_id, "fine")
    assert (approved.status, approved.reviewed_by) == ("approved", "boss")

    edited = await library.update(BOSS, created.procedure_id, ProcedureChanges(trigger_pattern="renew"))
    assert (edited.status, edited.reviewed_by) == ("pending", None)
    with pytest.raises(Forbidden):
        await library.approve(BOSS, created.procedure_id)
    assert (await library.approve(ROOT, created.procedure_id)).status == "approved"

    await house.learning.capture("acme", await house.hold())
    [candidate] = (await library.page(ROOT, Filter(status="pending"))).items
    assert (await library.approve(ROOT, candidate.procedure_id)).status == "approved"
    with pytest.raises(Conflict):
        await library.approve(BOSS, candidate.procedure_id)
