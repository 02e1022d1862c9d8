"""Search among an agent's chunks: scanned or by index, it finds the same, within its filters, and in one order."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest

from octopus.agents.store import PostgresAgentStore
from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.ranking import KnowledgeWeights
from octopus.relevance import Vector
from octopus.semantic import search_store
from octopus.semantic.search_store import EXACT_TO, PostgresKnowledgeSearch
from octopus.semantic.types import Hit, SearchMode
from tests.conftest import DatabaseUrls
from tests.support.embedder import WordEmbedder
from tests.support.library import Library

TENANT = "acme"
MODES: list[SearchMode] = ["vector", "hybrid"]
WORDS = [f"{a}{b}" for a in ("bar", "den", "fol", "gim", "kos") for b in ("ale", "ind", "orm", "ust")]


class Wide(WordEmbedder):
    """As long as the shipped embedder's vectors, so that the index is there for it."""

    dimensions = 384


@pytest.fixture
def embedder() -> Wide:
    return Wide()


@pytest.fixture
def library(database: Database, space: EmbeddingSpace, embedder: Wide) -> Library:
    return Library(database, space, embedder)


class Search:
    """The production search with a switch: everything by scan, or everything by index."""

    def __init__(self, database: Database, space: EmbeddingSpace, embedder: Wide) -> None:
        self._embedder = embedder
        self._by = {
            "scan": PostgresKnowledgeSearch(database, space, exact_to=10**9),
            "index": PostgresKnowledgeSearch(database, space, exact_to=0),
        }

    async def __call__(
        self,
        way: str,
        agents: Sequence[UUID],
        text: str,
        mode: SearchMode = "hybrid",
        limit: int = 5,
        tenant: str = TENANT,
    ) -> list[Hit]:
        vector: Vector = (await self._embedder.embed([text]))[0]
        return await self._by[way].search(tenant, agents, text, vector, mode, limit)


@pytest.fixture
def search(database: Database, space: EmbeddingSpace, embedder: Wide) -> Search:
    return Search(database, space, embedder)


def sentences(number: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=8)) + f" item{seed}x{n}" for n in range(number)]


@pytest.mark.parametrize("mode", MODES)
async def test_the_index_finds_what_a_scan_finds(
    library: Library, search: Search, agent: Agent, mode: SearchMode
) -> None:
    for n in range(10):
        await library.add(agent.agent_id, sentences(30, n))
    rng = random.Random(3)
    for _ in range(20):
        asked = " ".join(rng.choices(WORDS, k=4))
        scanned, walked = [await search(way, [agent.agent_id], asked, mode, 10) for way in ("scan", "index")]
        assert [(h.document_id, h.ordinal) for h in walked] == [(h.document_id, h.ordinal) for h in scanned]


@pytest.mark.parametrize("way", ["scan", "index"])
@pytest.mark.parametrize("mode", MODES)
async def test_filters_leave_as_many_as_there_are(
    library: Library, search: Search, database: Database, agent: Agent, way: str, mode: SearchMode
) -> None:
    """A small agent among large neighbours, in its tenant and in another: the index must not run dry before it."""
    other = await PostgresAgentStore(database).create_agent(TENANT, "other", "", "You.", None, {})
    foreign = await PostgresAgentStore(database).create_agent("beta", "aria", "", "You.", None, {})
    asked = " ".join(WORDS[:4])
    await library.add(other.agent_id, [asked] * 300)
    await library.add(foreign.agent_id, [asked] * 300, tenant="beta")
    few = await library.add(agent.agent_id, ["nothing alike", "quite another thing", asked])

    found = await search(way, [agent.agent_id], asked, mode, 10)

    assert [hit.document_id for hit in found] == [few] * 3
    assert found[0].ordinal == 2
    assert await search(way, [agent.agent_id], asked, mode, 10, tenant="beta") == []
    assert len(await search(way, [agent.agent_id, other.agent_id], asked, mode, 10)) == 10


@pytest.mark.parametrize("way", ["scan", "index"])
async def test_a_rare_word_finds_what_the_vector_misses(
    library: Library, search: Search, agent: Agent, way: str
) -> None:
    await library.add(agent.agent_id, sentences(300, 1))
    long = await library.add(agent.agent_id, ["error E4711 " + " ".join(WORDS * 5)])

    meant = await search(way, [agent.agent_id], f"what is E4711 {WORDS[0]} {WORDS[1]}", "vector", 5)
    worded = await search(way, [agent.agent_id], f"what is E4711 {WORDS[0]} {WORDS[1]}", "hybrid", 5)

    assert long not in {hit.document_id for hit in meant}
    assert worded[0].document_id == long
    assert worded[0].share > 0.5


@pytest.mark.parametrize("way", ["scan", "index"])
async def test_words_are_found_around_a_slash(library: Library, search: Search, agent: Agent, way: str) -> None:
    await library.add(agent.agent_id, ["the client/server protocol", "a server", *sentences(20, 1)])
    for asked, holders in (("server", {0, 1}), ("server/protocol", {0, 1}), ("/client/", {0})):
        found = await search(way, [agent.agent_id], asked)
        assert {hit.ordinal for hit in found if hit.share > 0} == holders


@pytest.mark.parametrize("way", ["scan", "index"])
async def test_a_hit_has_its_rank_in_each_search(library: Library, search: Search, agent: Agent, way: str) -> None:
    document = await library.add(agent.agent_id, ["gimorm barale", "gimorm gimorm gimorm", "denind", "folust E4711"])

    found = await search(way, [agent.agent_id], "E4711 gimorm", limit=4)

    assert {hit.document_id for hit in found} == {document}
    by_cosine = sorted(found, key=lambda h: (-round(h.cosine, 3), h.ordinal))
    by_share = sorted(found, key=lambda h: -h.share)
    assert [hit.cosine_rank for hit in by_cosine] == [1, 2, 3, 4]
    assert [(hit.ordinal, hit.share_rank) for hit in by_share] == [(3, 1), (1, 2), (0, 3), (2, None)]
    (meant, *_) = await search(way, [agent.agent_id], "E4711 gimorm", "vector")
    assert (meant.cosine_rank, meant.share_rank) == (1, None)


async def test_the_best_support_each_other_in_rank_alone(
    library: Library, search: Search, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = KnowledgeWeights().peers
    await library.add(agent.agent_id, sentences(peers + 20, 1))
    found = {}
    for support in (0.0, 0.3):
        monkeypatch.setitem(search_store._FEEDBACK, "support", support)
        found[support] = await search("scan", [agent.agent_id], " ".join(WORDS[:4]), limit=peers + 20)

    alone, supported = found.values()
    assert alone[:peers] != supported[:peers]
    assert sorted(alone[:peers], key=repr) == sorted(supported[:peers], key=repr)  # with cosine and share
    assert alone[peers:] == supported[peers:]


async def test_what_resembles_nothing_is_not_supported(
    library: Library, search: Search, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await library.add(agent.agent_id, ["gimorm kosust", *(f"gimorm barale denind folorm item{n}" for n in range(4))])
    place = {}
    for support in (0.0, 1.0):
        monkeypatch.setitem(search_store._FEEDBACK, "support", support)
        place[support] = [hit.ordinal for hit in await search("scan", [agent.agent_id], "gimorm kosust")].index(0)
    assert place == {0.0: 0, 1.0: 4}


@pytest.mark.parametrize("mode", MODES)
async def test_equals_stand_in_the_order_of_their_place(
    library: Library, search: Search, agent: Agent, mode: SearchMode
) -> None:
    await library.add(agent.agent_id, ["the very same words"] * 40)
    found = await search("scan", [agent.agent_id], "the very same words", mode, 40)
    assert [hit.ordinal for hit in found] == list(range(40))


@pytest.mark.parametrize("asked", ["", "the of and", "quux", "日本語", "'; drop table chunks; --", "a " * 5_000])
@pytest.mark.parametrize("way", ["scan", "index"])
async def test_any_text_can_be_asked(library: Library, search: Search, agent: Agent, way: str, asked: str) -> None:
    await library.add(agent.agent_id, sentences(3, 1))
    assert len(await search(way, [agent.agent_id], asked)) == 3
    assert await search(way, [uuid4()], asked) == []


async def test_word_counts_follow_what_is_live(library: Library, database: Database, agent: Agent) -> None:
    """Published, replaced, withdrawn, deleted: always as if counted anew."""
    first = await library.add(agent.agent_id, sentences(5, 1))
    second = await library.add(agent.agent_id, sentences(5, 2))
    assert await library.counts(agent.agent_id) == await library.recounted(agent.agent_id)

    await library.replace(agent.agent_id, first, sentences(7, 3))
    assert await library.counts(agent.agent_id) == await library.recounted(agent.agent_id)

    await library.withdraw(first)
    assert await library.counts(agent.agent_id) == await library.recounted(agent.agent_id)

    await library.delete(second)
    assert await library.counts(agent.agent_id) == {}
    assert await database.all(TENANT, load_queries("tests.support", "library.sql")["postings"]) == []


async def test_a_query_has_one_plan_however_large_the_tables_are(library: Library, agent: Agent) -> None:
    await _check_plans(library)
    await library.add(agent.agent_id, sentences(20, 1))
    await _check_plans(library)


async def test_a_large_scope_is_searched_by_index_and_as_a_scan_would(
    library: Library,
    search: Search,
    agent: Agent,
    database: Database,
    space: EmbeddingSpace,
    database_urls: DatabaseUrls,
) -> None:
    """A document alone is larger than what is scanned, and the planner knows it."""
    await library.add_large(database_urls.owner, agent.agent_id, EXACT_TO + 1_000)

    plans = await _check_plans(library)
    assert "Index Scan using chunk_postings_pkey" in plans["with_words"]
    assert "Index Scan using chunk_term_counts_pkey" in plans["query_words"]
    for name in ("by_meaning", "by_meaning_and_words"):
        assert set(re.findall(r"chunks_\w+", plans[name])) == {"chunks_pkey"}

    production = PostgresKnowledgeSearch(database, space)
    exact = PostgresKnowledgeSearch(database, space, exact_to=10**9)
    rng, same = random.Random(5), 0
    for mode in MODES:
        for _ in range(10):
            vector = [rng.random() - 0.5 for _ in range(16)] + [0.0] * 368
            asked = TENANT, [agent.agent_id], f"item{rng.randrange(10_000)} word7", vector, mode, 10
            found, scanned = [{h.ordinal for h in await s.search(*asked)} for s in (production, exact)]
            same += len(found & scanned)
    assert same >= 198  # of 200


async def _check_plans(library: Library) -> dict[str, str]:
    """Whatever the planner knows of the tables: the index is walked by its own query alone, and unsorted."""
    plans = await library.plans()
    for dimensions in (256, 384, 512, 1024):
        assert f"Index Scan using chunks_nearest_{dimensions}" in plans[f"nearest_{dimensions}"]
        assert "Sort" not in plans[f"nearest_{dimensions}"]
    assert "chunks_nearest" not in plans["scan"]
    assert "Seq Scan on chunks" not in plans["by_meaning"] + plans["by_meaning_and_words"]
    return plans
