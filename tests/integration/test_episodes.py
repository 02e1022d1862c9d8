"""An ended session becomes one episode, made of what was said, and is recalled by what bears on the message."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel

from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.tokens import count_tokens
from octopus.episodic.closing import EpisodeWriter
from octopus.episodic.summarizer import Summarizer
from octopus.errors import Forbidden, ModelUnavailable, NotFound
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig
from octopus.ranking import DialogueWeights
from octopus.recall import Scope
from tests.support.embedder import WordEmbedder
from tests.support.episodic import ADA, ADMIN, TEAL, Memory, reply
from tests.support.sessions import ScriptedModel, hold_session


@pytest.fixture
def memory(database: Database, space: EmbeddingSpace, embedder: WordEmbedder, scope: Scope) -> Memory:
    return Memory(database, space, embedder, scope)


async def test_a_session_becomes_one_episode_with_summary_and_key_facts(memory: Memory) -> None:
    episode = await memory.remembered(TEAL)

    found = await memory.episodes.get(ADA, episode)

    assert found.summary == "The user told a favourite colour and had a table booked."
    assert found.key_facts == [
        "The user's favourite colour is teal.",
        "A table at Luigi's is booked for Friday 2026-11-27.",
    ]  # what cites no message of the log is made up
    assert (found.summary_source, found.message_count, found.end_reason) == ("model", 4, "UserClosed")


async def test_the_model_reads_the_log_and_nothing_else(memory: Memory) -> None:
    await memory.remembered(TEAL)
    [asked] = memory.model.asked
    lines = asked.splitlines()
    assert [line.partition(" ")[0] for line in lines[1:-1]] == ["User", "Assistant", "User", "Assistant"]
    assert lines[1].endswith("]: My favourite colour is teal. Please remember it.")


@pytest.mark.parametrize("deliveries", [2, 8])
async def test_however_often_the_event_comes_there_is_one_episode(memory: Memory, deliveries: int) -> None:
    event = await memory.ended(TEAL)

    outcomes = await asyncio.gather(*(memory.writer.remember(event, str(n)) for n in range(deliveries)))
    again = await memory.writer.remember(event, "later")

    assert sorted(outcomes) == ["not_claimed"] * (deliveries - 1) + ["written"]
    assert again == "not_claimed"
    assert len((await memory.episodes.list(ADA)).items) == 1
    assert len(memory.model.asked) == 1


async def test_an_event_of_another_length_or_of_an_open_session_is_not_acted_upon(memory: Memory) -> None:
    event = await memory.ended(TEAL)
    open_session = await hold_session(memory.log, memory.scope, TEAL)

    for stale in (
        event.model_copy(update={"last_seq": 2}),
        event.model_copy(update={"tenant_id": "other"}),
        event.model_copy(update={"conversation_id": uuid4()}),
        event.model_copy(update={"conversation_id": open_session}),
    ):
        assert await memory.writer.remember(stale, "w") == "not_claimed"
    assert (await memory.episodes.list(ADMIN)).items == []


async def test_a_failed_attempt_leaves_the_session_to_the_next(memory: Memory) -> None:
    event = await memory.ended(TEAL)

    def unavailable(schema: type[BaseModel], text: str) -> Mapping[str, Any]:
        raise ModelUnavailable()

    failing = EpisodeWriter(
        memory.store, Summarizer(ScriptedModel(unavailable), count_tokens), memory.embedder, count_tokens
    )
    with pytest.raises(ModelUnavailable):
        await failing.remember(event, "a")
    assert await memory.writer.remember(event, "b") == "written"


async def test_a_worker_that_lost_its_claim_writes_nothing(memory: Memory) -> None:
    event = await memory.ended(TEAL)
    claim = await memory.store.claim_session("acme", event.conversation_id, event.last_seq, "slow", 0)
    assert claim
    assert await memory.writer.remember(event, "quick") == "written"
    assert not await memory.store.write_episode("acme", claim, "slow", None)
    assert len((await memory.episodes.list(ADA)).items) == 1


@pytest.mark.parametrize(
    ("replies", "source", "calls"), [(["bad", "good"], "model", 2), (["bad", "bad"], "extractive", 2)]
)
async def test_a_bad_reply_is_retried_once_and_then_replaced_by_an_extract(
    memory: Memory, replies: list[str], source: str, calls: int
) -> None:
    def scripted(schema: type[BaseModel], text: str) -> Mapping[str, Any]:
        return {"summary": ""} if replies.pop(0) == "bad" else reply(schema, text)

    model = ScriptedModel(scripted)
    writer = EpisodeWriter(memory.store, Summarizer(model, count_tokens), memory.embedder, count_tokens)
    await writer.remember(await memory.ended(TEAL), "w")

    [episode] = (await memory.episodes.list(ADA)).items
    assert episode.summary_source == source
    assert len(model.asked) == calls
    if source == "extractive":
        assert "My favourite colour is teal." in episode.summary
        assert any(fact.endswith("the user said: My favourite colour is teal.") for fact in episode.key_facts)


async def test_two_messages_need_no_model(memory: Memory) -> None:
    episode = await memory.episodes.get(ADA, await memory.remembered(TEAL[:1]))
    assert (episode.summary_source, episode.key_facts, memory.model.asked) == ("verbatim", [], [])
    assert episode.summary == (
        "User: My favourite colour is teal. Please remember it. Assistant: I will remember that you like teal."
    )


async def test_a_long_session_is_summarised_in_parts(memory: Memory) -> None:
    def scripted(schema: type[BaseModel], text: str) -> Mapping[str, Any]:
        if schema.__name__ == "JointSummary":
            return {"summary": "joint"}
        seq = int(text.split("[")[1].split(",")[0])
        return {"summary": f"from {seq}", "key_facts": [{"statement": f"fact of {seq}", "messages": [seq]}]}

    model = ScriptedModel(scripted)
    summarizer = Summarizer(model, count_tokens, part_tokens=120)
    writer = EpisodeWriter(memory.store, summarizer, memory.embedder, count_tokens)
    talk = [(f"question {n} " + "word " * 40, "answer") for n in range(4)]
    await writer.remember(await memory.ended(talk), "w")

    [episode] = (await memory.episodes.list(ADA)).items
    assert episode.summary == "joint"
    assert len(episode.key_facts) == len(model.asked) - 1 >= 2
    assert all(count_tokens(asked) < 140 for asked in model.asked)


async def test_recall_finds_the_episode_by_a_fact_and_says_which(memory: Memory) -> None:
    teal = await memory.remembered(TEAL)
    await memory.remembered([("What is the weather in Oslo?", "It snows in Oslo.")])

    found = await memory.recollection("what colour is my favourite")

    assert [episode.episode_id for episode in found.episodes] == [teal]
    [episode] = found.episodes
    assert episode.matched == ["The user's favourite colour is teal."]
    assert episode.score.rank == 1
    assert episode.score.relevance >= 0.3
    assert (episode.score.cosine_rank, episode.score.share_rank) == (1, 1)
    assert len(found.near_misses) == 1
    assert found.near_misses[0].score.relevance < 0.3
    assert (found.near_misses[0].score.cosine_rank, found.near_misses[0].score.share_rank) == (2, None)


async def test_the_best_episodes_are_the_best_of_all(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are compared only in sessions that can be among the best, and none of these is missed."""
    monkeypatch.setattr("octopus.episodic.store._WEIGHTS", DialogueWeights(part=0.0))  # a look at the candidates alone
    rng = random.Random(4)
    words = [f"{a}{b}" for a in ("bar", "den", "fol", "gim") for b in ("ale", "ind", "orm", "ust", "ela")]

    def sentence() -> str:
        return " ".join(rng.choices(words, range(20, 0, -1), k=6))

    for _ in range(20):
        await memory.remembered([(sentence(), sentence()) for _ in range(rng.randint(1, 3))])
    for _ in range(20):
        text = " ".join(rng.sample(words, 3))
        [vector] = await memory.embedder.embed([text])
        few, every = [
            list(dict.fromkeys(hit.episode.episode_id for hit in hits))
            for hits in [await memory.store.best_traces(memory.scope, text, vector, n) for n in (3, 20)]
        ]
        assert len(every) == 20
        assert few == every[:3]


async def test_a_passage_is_shown_only_when_nothing_else_matched(memory: Memory) -> None:
    await memory.remembered(TEAL)
    found = await memory.recollection("remember that you like teal", episodic_min_score=0.5)
    [episode] = found.episodes
    assert [passage.startswith("User: My favourite colour is teal.") for passage in episode.matched] == [True]


async def test_an_episode_that_has_every_word_is_found_whatever_its_vector_says(memory: Memory) -> None:
    episode = await memory.remembered([("My order AX-4412 never came, it was " + "a long story " * 30, "Sorry.")])
    assert await memory.recalled("AX-4412", episodic_min_score=0.9) == [episode]
    assert await memory.recalled("AX-4412", episodic_min_score=0.95) == []
    assert await memory.recalled("story/order", episodic_min_score=0.9) == [episode]
    for one in ("sorry", "sorry, sorry"):  # one word is no evidence
        assert await memory.recalled(one, episodic_min_score=0.9) == []


@pytest.mark.parametrize(
    ("asked", "day"),
    [
        ("what happened in May 2023", 1),
        ("on 8 May", 1),
        ("2023-05-08", 1),
        ("in 2022", 0),
        ("June 2023?", 2),
    ],
)
async def test_a_session_is_found_by_its_day_which_is_not_shown(
    memory: Memory, database: Database, asked: str, day: int
) -> None:
    episodes = []
    for started_at in ("2022-05-07T12:00Z", "2023-05-07T23:30-05:00", "2023-06-08T12:00Z", "2024-08-23T12:00Z"):
        event = await memory.ended([("How is the garden?", "It is green.")])
        held = {"at": started_at, "id": event.conversation_id}
        await database.run("acme", "update conversations set started_at = %(at)s where conversation_id = %(id)s", held)
        episodes.append(await memory.remembered_of(event))

    found = await memory.recollection(asked, episodic_min_score=0.1)

    assert found.episodes[0].episode_id == episodes[day]
    shown = f"{found} {await memory.episodes.get(ADA, episodes[day])}"
    assert not any(word in shown for word in ("May", "June"))


async def test_the_modes_of_recall(memory: Memory) -> None:
    teal = await memory.remembered(TEAL)
    others = [await memory.remembered([(f"Tell me about topic{n}", f"topic{n} it is")]) for n in range(4)]

    asked = "favourite colour teal"
    assert await memory.recalled(asked) == [teal]
    assert await memory.recalled(asked, episodic_recall_mode="recency") == others[:0:-1]
    assert await memory.recalled(asked, episodic_recall_mode="both") == [teal, others[3], others[2]]
    assert await memory.recalled("topic3", episodic_recall_mode="both") == [others[3], others[2]]


@pytest.mark.parametrize("mode", ["semantic", "recency", "both"])
async def test_recall_stays_within_tenant_agent_and_user(memory: Memory, mode: str) -> None:
    episode = await memory.remembered(TEAL)
    asked = "favourite colour teal"
    assert await memory.recalled(asked, episodic_recall_mode=mode) == [episode]
    for foreign in (
        Scope("other", "ada", memory.scope.agent_id),
        Scope("acme", "eve", memory.scope.agent_id),
        Scope("acme", "ada", uuid4()),
    ):
        assert await memory.recalled(asked, foreign, episodic_recall_mode=mode) == []


async def test_nothing_is_remembered_for_an_agent_without_episodic_memory(memory: Memory, database: Database) -> None:
    event = await memory.ended(TEAL)
    async with database.transaction("acme") as tx:
        await tx.run("""update agents set memory_config = '{"episodic_enabled": false}'""")
    assert await memory.writer.remember(event, "w") == "nothing_to_remember"
    assert await memory.writer.remember(event, "w") == "not_claimed"
    assert (await memory.episodes.list(ADA)).items == []


async def test_deleting_an_episode_deletes_what_was_said(memory: Memory, database: Database) -> None:
    episode = await memory.remembered(TEAL)
    kept = await memory.remembered([("keep me", "ok")])
    for caller in (Principal("acme", "eve"), Principal("other", "ada", frozenset({Role.ADMIN}))):
        with pytest.raises(NotFound):
            await memory.episodes.get(caller, episode)
        with pytest.raises(NotFound):
            await memory.episodes.delete(caller, episode)

    await memory.episodes.delete(ADA, episode)

    assert [e.episode_id for e in (await memory.episodes.list(ADA)).items] == [kept]
    for table in ("messages", "episode_facts", "turns"):
        rows = await database.all("acme", f"select {table}::text as row from {table}")
        assert rows
        assert not any("teal" in row["row"] for row in rows)


async def test_a_search_is_what_a_turn_would_recall(memory: Memory) -> None:
    episode = await memory.remembered(TEAL)
    asked = {
        "agent_id": memory.scope.agent_id,
        "query": "favourite colour",
        "config": MemoryConfig(episodic_min_score=0.3),
    }

    for caller, user in ((ADA, None), (ADMIN, "ada")):
        found = await memory.episodes.search(caller, user_id=user, **asked)
        assert [e.episode_id for e in found.episodes] == [episode]
    assert (await memory.episodes.search(Principal("acme", "eve"), **asked)).episodes == []
    with pytest.raises(Forbidden):
        await memory.episodes.search(Principal("acme", "eve"), user_id="ada", **asked)
