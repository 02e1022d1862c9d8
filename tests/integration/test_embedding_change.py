"""Another embedding model for all memories, while queries, writes, erasures and kills go on."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from octopus.cloud.database import Database
from octopus.embeddings.change import EmbeddingChange
from octopus.episodic.privacy import Privacy
from octopus.episodic.privacy_store import PostgresPrivacyStore
from octopus.errors import Conflict, EmbeddingSpaceMismatch, NotFound, Unavailable
from octopus.procedural.draft import ProcedureChanges
from octopus.recall import Scope
from octopus.relevance import Vector
from octopus.semantic.reembed import BATCH
from tests.conftest import DatabaseUrls
from tests.support.procedures import draft
from tests.support.spaces import (
    ADMIN,
    GENEROUS,
    TRUSTED,
    Half,
    Killed,
    Mortal,
    Narrow,
    Quarter,
    Room,
    Rooms,
    Twin,
    Wide,
    change_of,
)

ROOT = Path(__file__).parents[2]
QUESTION = "how do I book the harbour ferry to the island"
TABLES = {"documents": "chunks", "episodes": "episode_facts", "procedures": "procedure_vectors"}
GUIDES = [
    [f"The harbour ferry to the island leaves pier {n} at {hour} o'clock." for hour in range(1, 20)] for n in range(5)
]
TALKS = [
    [(f"Book the harbour ferry number {n}. I travel with {n} dogs.", f"Ferry {n} is booked. Bring {n} leads.")]
    for n in range(4)
]


def soon() -> float:
    return time.monotonic() + 60


@dataclass
class Town:
    """A tenant's memory in `Narrow` vectors, and the means to change that."""

    database: Database
    sweep: Database
    urls: DatabaseUrls
    room: Room
    guides: list[UUID]
    episodes: list[UUID]
    procedure: UUID

    def change(self, *embedders: Wide, lease_s: float = 0.0, grace_s: float = 0.0) -> EmbeddingChange:
        """A worker that takes over at once from one that died, and drops at once what was left."""
        models = (self.room.embedder, *embedders)
        return change_of(self.database, self.sweep, *models, lease_s=lease_s, grace_s=grace_s)

    def rows(self) -> dict[str, dict[str, int]]:
        """How many vectors each model has in each table."""
        count = "select s.model, count(*) from {} v join embedding_spaces s using (space_id) group by s.model"
        found: dict[str, dict[str, int]] = {}
        with psycopg.connect(self.urls.app, autocommit=True) as connection:
            connection.execute("select set_config('octopus.tenant_id', 'acme', false)")
            for table in TABLES.values():
                for model, rows in connection.execute(sql.SQL(count).format(sql.Identifier(table))).fetchall():
                    found.setdefault(model, {})[table] = rows
        return found


@pytest.fixture
async def town(database: Database, database_urls: DatabaseUrls, scope: Scope) -> AsyncIterator[Town]:
    room = Room(database, Narrow(), scope)
    guides = [await room.library.add(scope.agent_id, texts) for texts in GUIDES]
    episodes = [await room.episodes.remembered(talk) for talk in TALKS]
    ferry = draft("book_a_ferry", "zzzz", example_phrases=["book the harbour ferry to the island"])
    procedure = await room.procedures.create(ADMIN, ferry)
    await room.procedures.create(ADMIN, draft("file_taxes", "yyyy"))
    sweep = Database.at(database_urls.sweep, pool_size=3)
    yield Town(database, sweep, database_urls, room, guides, episodes, procedure.procedure_id)
    await sweep.close()


@pytest.mark.parametrize("coming", [Wide, Twin])
async def test_readers_see_one_space_whole_at_every_moment(
    town: Town, coming: type[Wide], scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TRUSTED, 0.0)
    rooms = Rooms(town.database, scope, Narrow(), coming())
    change = town.change(coming(), grace_s=1.0)
    before = await rooms.ask(QUESTION)
    assert before[1].chunks
    assert before[1].episodes
    assert before[1].procedure
    seen: list[list[tuple[str, object]]] = [[], []]
    done = asyncio.Event()

    async def read(answers: list[tuple[str, object]]) -> None:
        while not done.is_set():
            answers.append(await rooms.ask(QUESTION))

    readers = [asyncio.create_task(read(answers)) for answers in seen]
    await change.start(coming())
    while (await change.work(time.monotonic() + 0.3)).coming:
        pass
    while (await change.work(soon())).dropping:
        await asyncio.sleep(0.05)
    done.set()
    await asyncio.gather(*readers)

    after = await rooms.ask(QUESTION)
    assert (before[0], after[0]) == ("narrow words", coming.model)
    assert after[1].chunks
    for answers in seen:
        switch = next(n for n, answer in enumerate(answers) if answer[0] == coming.model)
        assert switch > 0
        assert answers == [before] * switch + [after] * (len(answers) - switch)
    assert town.rows().keys() == {coming.model}


async def test_a_killed_worker_is_followed_by_another_and_no_text_is_paid_for_twice(town: Town) -> None:
    """Killed each time that it begins to embed, after having done so once or twice."""
    mortal, dice, deaths = Mortal(), random.Random(7), 0
    change = town.change(mortal, grace_s=900.0)
    await change.start(mortal)
    mortal.texts.clear()
    while True:
        mortal.lives = dice.randint(1, 3)
        try:
            progress = await change.work(soon())
        except Killed:
            deaths += 1
        else:
            break
    assert (progress.current, progress.coming) == (Mortal.model, None)
    assert deaths > 5
    assert max(Counter(mortal.texts).values()) == 1
    rows = town.rows()
    assert rows[Mortal.model] == rows[Narrow.model]


async def test_who_dies_between_embedding_and_writing_loses_one_batch(town: Town) -> None:
    mortal = Mortal()
    change = town.change(mortal)
    await change.start(mortal)
    mortal.texts.clear()
    mortal.lives, mortal.after = 3, True
    with pytest.raises(Killed):
        await change.work(soon())
    mortal.lives = 1_000_000
    await change.work(soon())
    paid = Counter(mortal.texts)
    assert sum(paid.values()) - len(paid) == mortal.lost > 0


async def test_processes_that_are_killed_at_any_point_lose_one_batch_each(
    town: Town, scope: Scope, tmp_path: Path
) -> None:
    """Killed as Lambda kills, a moment after so many texts more: the last process finds the rest to do, and no more."""
    for n in range(6):
        await town.room.library.add(scope.agent_id, [f"Timetable {n}, line {line}." for line in range(150)])
    log, dice, deaths = tmp_path / "embedded", random.Random(5), 0
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'shared'}",
        "OCTOPUS_DATABASE_URL": town.urls.app,
        "OCTOPUS_SWEEP_DATABASE_URL": town.urls.sweep,
        "EMBEDDED_LOG": str(log),
    }

    def paid() -> list[str]:
        return log.read_text().splitlines() if log.exists() else []

    await town.change().start(Wide())
    said = ""
    while not said:
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.reembed_worker"), env=environment, stdout=asyncio.subprocess.PIPE
        )
        enough = len(paid()) + 100
        while len(paid()) < enough and worker.returncode is None:
            await asyncio.sleep(0.005)
        await asyncio.sleep(dice.uniform(0, 0.1))
        if worker.returncode is None:
            worker.kill()
            deaths += 1
        said = (await worker.communicate())[0].decode().strip()
        assert worker.returncode in (0, -signal.SIGKILL)

    assert said == Wide.model
    assert deaths > 3
    twice = len(paid()) - len(set(paid()))
    assert twice <= deaths * BATCH
    rows = town.rows()
    assert rows[Wide.model] == rows[Narrow.model]
    assert rows[Wide.model]["chunks"] == 5 * 19 + 6 * 150


async def test_what_is_written_during_a_change_is_found_after_it(town: Town, scope: Scope) -> None:
    wide, room = Wide(), town.room
    change = town.change(wide, grace_s=900.0)
    await change.start(wide)
    await change.work(time.monotonic() + 0.2)
    episode = await room.episodes.remembered([("The ferry captain is called Ines.", "I will remember captain Ines.")])
    await room.library.replace(scope.agent_id, town.guides[0], ["Captain Ines sails the harbour ferry at noon."])
    edited = ProcedureChanges(description="Greet captain Ines on the harbour ferry.", example_phrases=[])
    await room.procedures.update(ADMIN, town.procedure, edited)
    bob = Scope("acme", "bob", scope.agent_id)
    await room.episodes.remembered([("I am bob and I fear ferries.", "Noted, bob.")], bob)
    await Privacy(PostgresPrivacyStore(town.database)).erase(ADMIN, "bob", None)
    await room.library.delete(town.guides[1])

    assert (await change.work(soon())).current == wide.model

    rooms = Rooms(town.database, scope, room.embedder, wide)
    model, answer = await rooms.ask("greet captain Ines on the harbour ferry")
    assert model == wide.model
    assert answer.chunks[0][0] == "Captain Ines sails the harbour ferry at noon."
    assert episode in [found for found, *_ in answer.episodes]
    assert answer.procedure
    assert answer.procedure[0] == "book_a_ferry"
    assert answer.procedure[1] > 0.9  # by its new description
    rows = town.rows()
    assert rows[wide.model] == rows[room.embedder.model]


async def test_what_is_being_written_when_the_change_ends_is_waited_for(town: Town, scope: Scope) -> None:
    """And who comes too late is refused, and may try again with the new model."""
    wide, room = Wide(), town.room
    change = town.change(wide)
    await change.start(wide)
    async with town.database.transaction("acme") as tx:
        insert = """insert into procedure_vectors (tenant_id, procedure_id, ordinal, space_id, embedding)
                    select tenant_id, procedure_id, 9, space_id, embedding from procedure_vectors
                    where tenant_id = 'acme' and ordinal = 0 and space_id = current_space()"""
        await tx.run(insert)
        working = asyncio.create_task(change.work(soon()))
        await asyncio.sleep(1.0)
        assert not working.done()
        assert (await town.change(wide).progress()).coming == wide.model
    assert (await working).current == wide.model
    with pytest.raises(Unavailable, match="embedding model has just been changed"):
        await room.library.add(scope.agent_id, ["Too late."])
    with pytest.raises(EmbeddingSpaceMismatch):
        await Room(town.database, Twin(), scope).space.id()


async def test_one_change_at_a_time_and_none_to_the_model_in_use(town: Town) -> None:
    wide = Wide()
    change = town.change(wide)
    with pytest.raises(Conflict, match="is the model in use"):
        await change.start(town.room.embedder)
    with pytest.raises(NotFound, match="No change"):
        await change.cancel()
    progress = await change.start(wide)
    assert progress.total == progress.left == {"documents": 5, "episodes": 4, "procedures": 2}
    with pytest.raises(Conflict, match="wide words is under way"):
        await change.start(Twin())
    with pytest.raises(Conflict, match="wide words is under way"):
        await change.start(wide)


async def test_a_model_that_does_not_answer_begins_nothing(town: Town) -> None:
    class Mute(Wide):
        async def embed(self, texts: object) -> list[list[float]]:
            raise Unavailable("The embedding model does not answer; retry.")

    with pytest.raises(Unavailable):
        await town.change().start(Mute())
    assert (await town.change().progress()).coming is None


async def test_an_item_that_cannot_be_embedded_holds_up_nothing_but_the_end(town: Town, scope: Scope) -> None:
    class Picky(Wide):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            if any("poison" in text for text in texts):
                raise Unavailable("The embedding model does not answer; retry.")
            return await super().embed(texts)

    bad = await town.room.library.add(scope.agent_id, ["poison"])
    change = town.change(Picky(), lease_s=1.0)
    await change.start(Picky())
    progress = await change.work(soon())
    assert (progress.coming, progress.left) == (Picky.model, {"documents": 1})
    await town.room.library.delete(bad)
    await asyncio.sleep(1.0)
    assert (await change.work(soon())).current == Picky.model


async def test_an_embedder_that_is_down_is_not_asked_for_every_item(town: Town) -> None:
    class Down(Wide):
        asked = 0

        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            self.asked += 1
            if self.asked > 1:
                raise Unavailable("The embedding model does not answer; retry.")
            return await super().embed(texts)

    down = Down()
    change = town.change(down)
    await change.start(down)
    with pytest.raises(Unavailable):
        await change.work(soon())
    assert down.asked == 4  # the first was before it began


async def test_a_cancelled_change_leaves_nothing_behind(town: Town) -> None:
    wide = Wide()
    change = town.change(wide)
    before = town.rows()
    await change.start(wide)
    await change.work(time.monotonic() + 0.1)
    assert wide.model in town.rows()
    cancelled = await change.cancel()
    assert (cancelled.current, cancelled.coming) == (town.room.embedder.model, None)
    assert list(cancelled.dropping) == [wide.model]
    assert (await change.work(soon())).dropping == {}
    assert town.rows() == before


async def test_a_change_that_was_cancelled_can_go_on_and_one_that_was_made_can_be_undone(town: Town) -> None:
    wide, narrow = Wide(), town.room.embedder
    change = town.change(wide, grace_s=900.0)
    await change.start(wide)
    await change.work(time.monotonic() + 0.2)
    await change.cancel()
    await change.start(wide)
    await change.work(soon())
    assert max(Counter(t for t in wide.texts if not t.startswith("Can this")).values()) == 1

    narrow.texts.clear()
    await change.start(narrow)
    assert (await change.work(soon())).current == narrow.model
    assert len(narrow.texts) == 1  # the question whether it answers


async def test_old_vectors_are_dropped_after_a_while_and_words_still_count_once(town: Town, scope: Scope) -> None:
    wide = Wide()
    patient = town.change(wide, grace_s=900.0)
    counts = await town.room.library.counts(scope.agent_id)
    await patient.start(wide)
    progress = await patient.work(soon())
    assert list(progress.dropping) == [town.room.embedder.model]
    assert town.rows().keys() == {wide.model, town.room.embedder.model}
    assert (await town.change(wide).work(soon())).dropping == {}
    assert town.rows().keys() == {wide.model}
    room = Room(town.database, wide, scope)
    assert counts == await room.library.counts(scope.agent_id) == await room.library.recounted(scope.agent_id)
    assert await room.episodes.episodes.get(ADMIN, town.episodes[0])
    assert await town.database.all("acme", "select ordinal from episode_facts where said_on = ''") == []
    await room.library.delete(town.guides[0])
    assert await room.library.counts(scope.agent_id) == await room.library.recounted(scope.agent_id)


@pytest.mark.parametrize("coming", [Wide, Half, Quarter, Twin])
async def test_both_spaces_are_searched_by_index(town: Town, scope: Scope, coming: type[Wide]) -> None:
    change = town.change(coming(), grace_s=900.0)
    await change.start(coming())
    await change.work(soon())
    for room in (town.room, Room(town.database, coming(), scope)):
        for guide in (texts[3] for texts in GUIDES):
            scanned = await room.scan.recall(scope, room.query(guide), GENEROUS)
            found = await room.index.recall(scope, room.query(guide), GENEROUS)
            assert found == scanned
            assert found.chunks
    plans = await Room(town.database, coming(), scope).library.plans()
    assert f"Index Scan using chunks_nearest_{coming.dimensions}" in plans[f"nearest_{coming.dimensions}"]


@pytest.mark.parametrize("table", ["chunks", "episode_facts"])
async def test_both_spaces_say_the_same_of_a_text_but_for_its_vectors(town: Town, table: str) -> None:
    """Whatever columns the table may get: what is not a vector is copied."""
    wide = Wide()
    change = town.change(wide, grace_s=900.0)
    await change.start(wide)
    await change.work(soon())
    rest = sql.SQL("select to_jsonb(v) - array['space_id', 'embedding', 'near', 'context', 'parts'] from {} v where {}")
    old, new = (
        rest.format(sql.Identifier(table), sql.SQL(which))
        for which in ("space_id <> current_space()", "space_id = current_space()")
    )
    with psycopg.connect(town.urls.app, autocommit=True) as connection:
        connection.execute("select set_config('octopus.tenant_id', 'acme', false)")
        assert connection.execute(old).fetchall()
        assert connection.execute(sql.SQL("{} except all {}").format(old, new)).fetchall() == []
        assert connection.execute(sql.SQL("{} except all {}").format(new, old)).fetchall() == []


async def test_facts_are_listed_once_while_there_are_two_spaces(town: Town) -> None:
    wide, library = Wide(), town.room.episodes.episodes
    before = await library.get(ADMIN, town.episodes[0])
    change = town.change(wide, grace_s=900.0)
    await change.start(wide)
    await change.work(soon())
    assert await library.get(ADMIN, town.episodes[0]) == before


async def test_two_workers_share_the_work(town: Town) -> None:
    wide = Mortal()
    change = town.change(wide, lease_s=300.0)
    await change.start(wide)
    wide.texts.clear()
    await asyncio.gather(*(town.change(wide, lease_s=300.0).work(soon()) for _ in range(2)))
    await change.work(soon())
    assert (await change.progress()).current == wide.model
    assert max(Counter(wide.texts).values()) == 1


async def test_the_roles_can_do_no_more_than_they_must(town: Town) -> None:
    with psycopg.connect(town.urls.app, autocommit=True) as connection:
        for statement in ("update embedding_spaces set state = 'gone'", "delete from embedding_spaces"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    with psycopg.connect(town.urls.sweep, autocommit=True) as connection:
        for table in TABLES.values():
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql.SQL("select space_id from {}").format(sql.Identifier(table)))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select file_name from documents")
