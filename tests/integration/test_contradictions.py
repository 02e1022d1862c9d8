"""What was said later stands beside what it contradicts, with its date, and last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.tokens import count_tokens
from octopus.episodic.closing import EpisodeWriter
from octopus.episodic.summarizer import Summarizer
from octopus.memory_config import MemoryConfig
from octopus.recall import Scope
from octopus.working.selection import select_episodes
from octopus.working.types import Tokens
from tests.support.embedder import WordEmbedder
from tests.support.episodic import Memory
from tests.support.sessions import ScriptedModel

ASKED = "what is the favourite colour of the user"


@pytest.fixture
def memory(database: Database, space: EmbeddingSpace, embedder: WordEmbedder, scope: Scope) -> Memory:
    memory = Memory(database, space, embedder, scope)
    memory.model = ScriptedModel(told_colour)
    memory.writer = EpisodeWriter(memory.store, Summarizer(memory.model, count_tokens), embedder, count_tokens)
    return memory


def told_colour(schema: type[BaseModel], text: str) -> Mapping[str, Any]:
    colour = text.partition("is now ")[2].partition(".")[0]
    fact = {"statement": f"Of all colours there are the user's favourite colour to wear is {colour}.", "messages": [1]}
    return {"summary": "Small talk.", "key_facts": [fact]}


async def section(memory: Memory, **config: Any) -> list[str]:
    """The lines of the section that the model reads, without its header."""
    recollection = await memory.recollection(ASKED, **config)
    text = select_episodes(recollection, MemoryConfig(), Tokens(count_tokens, 1.0)).text
    return [line for line in (text or "").splitlines() if line.startswith(("- ", "  •"))]


async def test_both_are_shown_with_their_dates_and_the_newer_one_last(memory: Memory, database: Database) -> None:
    for colour, started_at in (("green", "2026-09-30"), ("blue", "2026-03-14")):
        episode = await memory.remembered([(f"My favourite colour is now {colour}.", "Noted."), ("Bye", "Bye")])
        dated = "update episodes set started_at = %(at)s, ended_at = %(at)s where episode_id = %(id)s"
        await database.run("acme", dated, {"at": started_at, "id": episode})

    assert await section(memory) == [
        "- 2026-03-14: Small talk.",
        "  • Of all colours there are the user's favourite colour to wear is blue.",
        "- 2026-09-30: Small talk.",
        "  • Of all colours there are the user's favourite colour to wear is green.",
    ]


async def test_the_newest_is_not_crowded_out_by_what_was_said_more_often(memory: Memory) -> None:
    for colour in ("blue", "red", "blue", "gray", "blue", "pink", "blue", "green"):
        await memory.remembered([(f"My favourite colour is now {colour}.", "Noted."), ("Bye", "Bye")])

    shown = await section(memory, episodic_top_k=2)

    assert [line for line in shown if "•" in line][
        -1
    ] == "  • Of all colours there are the user's favourite colour to wear is green."
