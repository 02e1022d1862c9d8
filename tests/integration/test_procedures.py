"""Procedural memory on the database: who follows what, and how the library keeps its history."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from octopus.agents.registry import AgentRegistry
from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.errors import Conflict, Forbidden, InvalidInput, NotFound
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig
from octopus.procedural.draft import ProcedureChanges
from octopus.procedural.library import ProcedureLibrary
from octopus.procedural.match import TriggerSet
from octopus.procedural.ports import Filter
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.store import PostgresProcedureStore
from octopus.procedural.trial import ProcedureTrial
from octopus.procedural.types import Guidance
from octopus.recall import Query, Scope
from tests.support.embedder import WordEmbedder
from tests.support.procedures import draft, procedure

ROOT = Principal("acme", "root", frozenset({Role.ADMIN}))
Recall = Callable[[str], Awaitable[Guidance]]


@pytest.fixture
def store(database: Database, space: EmbeddingSpace) -> PostgresProcedureStore:
    return PostgresProcedureStore(database, space)


@pytest.fixture
def library(store: PostgresProcedureStore, embedder: WordEmbedder) -> ProcedureLibrary:
    return ProcedureLibrary(store, embedder)


@pytest.fixture
def memory(store: PostgresProcedureStore, embedder: WordEmbedder) -> ProcedureRecall:
    return ProcedureRecall(store, embedder)


@pytest.fixture
def recall(memory: ProcedureRecall, scope: Scope, embedder: WordEmbedder) -> Recall:
    return lambda text: ask(memory, scope, embedder, text)


async def ask(
    memory: ProcedureRecall, scope: Scope, embedder: WordEmbedder, text: str, config: MemoryConfig | None = None
) -> Guidance:
    async def embedding() -> list[float]:
        return (await embedder.embed([text]))[0]

    return await memory.recall(scope, Query(text, embedding()), config or MemoryConfig())


def followed(guidance: Guidance) -> tuple[str, str] | None:
    return guidance.match and (guidance.match.procedure.name, guidance.match.rule)


async def test_an_administrators_procedure_is_in_force_at_once(
    library: ProcedureLibrary, recall: Recall, scope: Scope
) -> None:
    assert followed(await recall("reset my password")) is None
    created = await library.create(ROOT, draft("reset", "reset.*password", scope.agent_id))

    guidance = await recall("Reset my password")

    assert created.status == "approved"
    assert (created.created_by, created.reviewed_by) == ("root", "root")
    assert guidance.match is not None
    assert guidance.match.procedure == created
    assert followed(guidance) == ("reset", "pattern")


async def test_an_own_procedure_goes_before_a_shared_one(
    library: ProcedureLibrary, recall: Recall, scope: Scope
) -> None:
    await library.create(ROOT, draft("reset", "reset.*password", priority=9))
    assert followed(await recall("reset password")) == ("reset", "pattern")
    await library.create(ROOT, draft("reset_own", "reset.*password", scope.agent_id))
    assert followed(await recall("reset password")) == ("reset_own", "pattern")


async def test_without_a_trigger_the_nearest_one_above_the_minimum(
    library: ProcedureLibrary, recall: Recall, memory: ProcedureRecall, scope: Scope, embedder: WordEmbedder
) -> None:
    phrases = ["I cannot get into my account any more"]
    await library.create(ROOT, draft("login", "xyzzy", example_phrases=phrases))
    await library.create(ROOT, draft("vendor", "xyzzy", description="Add a vendor"))

    guidance = await recall("I cannot get into my account")
    assert followed(guidance) == ("login", "embedding")
    assert guidance.match is not None
    assert guidance.match.score.relevance == pytest.approx(embedder.calibration.relevance((6 / 8) ** 0.5))

    missed = await recall("get into the garden")
    assert missed.match is None
    assert missed.near_misses[0].procedure.name == "login"
    assert missed.near_misses[0].score.rank == 1

    off = MemoryConfig(procedural_embedding_match=False)
    assert await ask(memory, scope, embedder, phrases[0], off) == Guidance()


async def test_only_what_is_approved_and_active_is_followed(
    library: ProcedureLibrary, store: PostgresProcedureStore, recall: Recall
) -> None:
    pending = procedure("captured", "reset", status="pending", reviewed_by=None, reviewed_at=None)
    await store.create_procedure("acme", pending, [], "captured")
    assert followed(await recall("reset")) is None

    approved = await library.approve(ROOT, pending.procedure_id, "good")
    assert followed(await recall("reset")) == ("captured", "pattern")
    assert (approved.reviewed_by, approved.review_note, approved.version) == ("root", "good", 2)

    await library.update(ROOT, pending.procedure_id, ProcedureChanges(is_active=False))
    assert followed(await recall("reset")) is None
    await library.update(ROOT, pending.procedure_id, ProcedureChanges(is_active=True))
    assert followed(await recall("reset")) == ("captured", "pattern")

    rejected = await library.reject(ROOT, pending.procedure_id, "obsolete")
    assert followed(await recall("reset")) is None
    assert rejected.review_note == "obsolete"

    await library.create(ROOT, draft("captured", "reset"))  # the name is free again
    with pytest.raises(Conflict, match="named 'captured'"):
        await library.approve(ROOT, pending.procedure_id)


async def test_another_agents_and_another_tenants_procedures_are_not_there(
    library: ProcedureLibrary, memory: ProcedureRecall, scope: Scope, embedder: WordEmbedder, database: Database
) -> None:
    created = await library.create(ROOT, draft("reset", "reset", scope.agent_id, example_phrases=["reset"]))
    other = await PostgresAgentStore(database).create_agent("acme", "other", "", "You.", None, {})
    for elsewhere in (replace(scope, tenant_id="umbrella"), replace(scope, agent_id=other.agent_id)):
        assert await ask(memory, elsewhere, embedder, "reset") == Guidance()

    stranger = Principal("umbrella", "root", frozenset({Role.ADMIN}))
    with pytest.raises(NotFound):
        await library.get(stranger, created.procedure_id)
    with pytest.raises(NotFound):
        await library.delete(stranger, created.procedure_id)
    with pytest.raises(NotFound, match="no agent"):
        await library.create(stranger, draft("reset", "reset", scope.agent_id))
    with pytest.raises(Forbidden):
        await library.get(Principal("acme", "ada"), created.procedure_id)


async def test_triggers_are_compiled_once_until_something_changes(
    library: ProcedureLibrary, recall: Recall, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []
    original = TriggerSet.__init__

    def counting(self: TriggerSet, procedures: list[object]) -> None:
        original(self, procedures)  # type: ignore[arg-type]
        compiled.append(len(self))

    one = await library.create(ROOT, draft("one", "one"))
    two = await library.create(ROOT, draft("two", "two"))
    monkeypatch.setattr(TriggerSet, "__init__", counting)
    for _ in range(3):
        assert followed(await recall("one")) == ("one", "name")
    assert [n for n in compiled if n] == [2]

    await library.update(ROOT, two.procedure_id, ProcedureChanges(trigger_pattern="deux"))
    assert followed(await recall("les deux")) == ("two", "pattern")
    await library.delete(ROOT, one.procedure_id)
    assert followed(await recall("number one")) is None
    assert [n for n in compiled if n] == [2, 2, 1]


async def test_a_library_too_large_for_a_turns_deadline_is_there_for_the_next(
    library: ProcedureLibrary, database: Database, space: EmbeddingSpace, embedder: WordEmbedder, scope: Scope
) -> None:
    class Slow(PostgresProcedureStore):
        async def load_procedures(self, tenant_id: str, agent_id: UUID, known_stamp: str | None) -> Any:
            found = await super().load_procedures(tenant_id, agent_id, known_stamp)
            if found[1] is not None:
                await asyncio.sleep(1)
            return found

    await library.create(ROOT, draft("reset", "reset"))
    memory = ProcedureRecall(Slow(database, space), embedder)
    guidance = None
    async with asyncio.timeout(20):
        while guidance is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    guidance = await ask(memory, scope, embedder, "reset it")
    assert followed(guidance) == ("reset", "pattern")


async def test_every_change_is_a_version_and_rollback_makes_another(library: ProcedureLibrary, recall: Recall) -> None:
    created = await library.create(ROOT, draft("reset", "reset"))
    steps = [{"instruction": "Ask."}, {"instruction": "Set it.", "tool_name": "set_password", "is_optional": True}]
    changes = ProcedureChanges.model_validate({"trigger_pattern": "renew", "steps": steps, "version": 1})
    edited = await library.update(ROOT, created.procedure_id, changes)
    assert [(s.order, s.tool_name, s.is_optional) for s in edited.steps] == [
        (1, None, False),
        (2, "set_password", True),
    ]

    restored = await library.rollback(ROOT, created.procedure_id, 1)

    assert (restored.version, restored.trigger_pattern, restored.steps) == (3, "reset", created.steps)
    assert followed(await recall("reset it")) == ("reset", "pattern")
    versions = await library.versions(ROOT, created.procedure_id)
    assert [(v.version, v.change, v.changed_by) for v in versions] == [
        (3, "rolled back", "root"),
        (2, "edited", "root"),
        (1, "created", "root"),
    ]
    assert [v.procedure for v in versions] == [restored, edited, created]
    with pytest.raises(NotFound, match="no version 9"):
        await library.rollback(ROOT, created.procedure_id, 9)


async def test_of_an_approval_and_an_edit_at_once_one_wins(
    library: ProcedureLibrary, store: PostgresProcedureStore
) -> None:
    for _ in range(5):
        pending = procedure(f"p{uuid4().hex}", "reset", status="pending")
        await store.create_procedure("acme", pending, [], "captured")
        changes = ProcedureChanges(trigger_pattern="something else", version=1)
        outcomes = await asyncio.gather(
            library.approve(ROOT, pending.procedure_id, version=1),
            library.update(ROOT, pending.procedure_id, changes),
            return_exceptions=True,
        )
        lost = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert [type(outcome) for outcome in lost] == [Conflict]
        now = await library.get(ROOT, pending.procedure_id)
        assert (now.version, now.status == "approved") == (2, now.trigger_pattern == "reset")


async def test_a_stale_version_is_refused(library: ProcedureLibrary) -> None:
    created = await library.create(ROOT, draft("reset", "reset"))
    await library.update(ROOT, created.procedure_id, ProcedureChanges(priority=3))
    with pytest.raises(Conflict):
        await library.update(ROOT, created.procedure_id, ProcedureChanges(priority=4, version=1))
    with pytest.raises(Conflict):
        await library.reject(ROOT, created.procedure_id, "old", version=1)
    with pytest.raises(Conflict, match="approved already"):
        await library.approve(ROOT, created.procedure_id)


async def test_bad_input_writes_nothing(library: ProcedureLibrary) -> None:
    with pytest.raises(InvalidInput, match="position 1"):
        await library.create(ROOT, draft("reset", "a)"))
    with pytest.raises(NotFound):
        await library.create(ROOT, draft("reset", "reset", uuid4()))
    assert (await library.page(ROOT, Filter())).items == []

    created = await library.create(ROOT, draft("reset", "reset"))
    with pytest.raises(InvalidInput):
        await library.update(ROOT, created.procedure_id, ProcedureChanges(trigger_pattern="x*"))
    with pytest.raises(Conflict, match="named 'reset'"):
        await library.create(ROOT, draft("reset", "again"))
    assert await library.get(ROOT, created.procedure_id) == created


async def test_lists_are_filtered_and_paged(
    library: ProcedureLibrary, store: PostgresProcedureStore, scope: Scope
) -> None:
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        await library.create(ROOT, draft(name, name, scope.agent_id if name < "c" else None))
    pending = procedure("p", "p", status="pending", is_active=False)
    await store.create_procedure("acme", pending, [], "captured")

    seen, cursor = [], None
    while True:
        page = await library.page(ROOT, Filter(status="approved"), cursor, limit=2)
        seen += [it.name for it in page.items]
        if (cursor := page.next_cursor) is None:
            break
    assert seen == names[::-1]
    assert [it.name for it in (await library.page(ROOT, Filter(is_active=False))).items] == ["p"]
    assert [it.name for it in (await library.page(ROOT, Filter(status="pending"))).items] == ["p"]
    of_agent = await library.page(ROOT, Filter(agent_id=scope.agent_id))
    assert {it.name for it in of_agent.items} == {*names, "p"}
    assert {it.name for it in (await library.page(ROOT, Filter(agent_id=uuid4()))).items} == {"c", "d", "e", "p"}


async def test_a_trial_says_what_would_match_and_why(
    library: ProcedureLibrary,
    store: PostgresProcedureStore,
    memory: ProcedureRecall,
    embedder: WordEmbedder,
    database: Database,
    scope: Scope,
) -> None:
    await library.create(ROOT, draft("best", "reset.*password", priority=1))
    await library.create(ROOT, draft("second", "reset"))
    off = await library.create(ROOT, draft("off", "reset"))
    await library.update(ROOT, off.procedure_id, ProcedureChanges(is_active=False))
    await store.create_procedure(
        "acme", procedure("captured", "password", status="pending", priority=5), [], "captured"
    )
    agents = AgentRegistry(PostgresAgentStore(database))
    trial = ProcedureTrial(store, embedder, memory, agents)

    report = await trial.run(ROOT, scope.agent_id, "Reset my password")

    assert report.match is not None
    assert (report.match.procedure.name, report.match.decided_by) == ("best", "priority")
    by_trigger = [(c.procedure.name, c.verdict, c.start, c.end) for c in report.candidates if c.rule == "pattern"]
    assert by_trigger == [
        ("captured", "pending", 9, 17),
        ("best", "followed", 0, 17),
        ("off", "disabled", 0, 5),
        ("second", "outranked", 0, 5),
    ]
    near = [c for c in report.candidates if c.rule == "embedding"]
    assert {c.procedure.name for c in near} == {"best", "second", "off"}
    with pytest.raises(NotFound):
        await trial.run(ROOT, uuid4(), "Reset")
