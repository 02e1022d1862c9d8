"""`make bench-context`: what it costs to assemble working memory, by the length of the conversation.

Times everything between the arrival of a message and the request to the model, save search, embedding and writing:
the read of agent, conversation and history from a real PostgreSQL, and the assembly. Every turn holds about 1,600
tokens of prose, so that a conversation of 100 turns fills the budget of 150,000 tokens.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import tracemalloc
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from uuid import UUID, uuid4

from infra.local.postgres import with_server
from octopus.agents.store import PostgresAgentStore
from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.queries import load_queries
from octopus.cloud.tokens import count_tokens, encoding
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.types import TurnContext, TurnDefaults
from octopus.episodic.types import Recollection
from octopus.memory_config import MemoryConfig
from octopus.procedural.types import Guidance
from octopus.semantic.types import Knowledge
from octopus.working.assembly import Ingredients, assemble
from octopus.working.pruning import LogExtent, whole_turns
from octopus.working.types import Tokens, WorkingMemory
from tests.support.memories import a_chunk, an_episode
from tests.support.schema import prepare

LENGTHS = (10, 100, 1_000, 10_000)
RUNS, WARM = 200, 5
QUESTION_TOKENS, ANSWER_TOKENS = 100, 1_500
MESSAGE = "What did the report say about open positions?"
CONFIG = MemoryConfig()
DEFAULTS = TurnDefaults(
    "claude", 1.25, CONFIG.max_working_memory_tokens, CONFIG.output_reserve_tokens, CONFIG.min_history_turns
)
TOKENS = Tokens(count_tokens, DEFAULTS.token_factor)
SQL = load_queries(__package__, "context.sql")


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory, with_server(Path(directory) / "data") as server:
        database = Database.at(await prepare(server), pool_size=2)
        owner = Database.at(server.dsn("octopus_bench"), pool_size=1)
        agent = await PostgresAgentStore(database).create_agent("acme", "aria", "", passages(1_000)[0], None, {})
        print(f"{'turns':>7}{'rows':>7}{'kept':>6}{'tokens':>9}{'load ms':>10}{'assemble ms':>13}"
              f"{'p50 ms':>9}{'p95 ms':>9}{'growth':>8}{'peak KB':>9}")  # fmt: skip
        talks = [await Talk.of(database, owner, agent, turns) for turns in LENGTHS]
        for run in range(WARM + RUNS):  # in turns, for the machine's own speed changes within seconds
            for talk in talks:
                await talk.take(warm=run < WARM)
        base = median(talks[LENGTHS.index(100)].whole)
        for talk in talks:
            p50, p95 = median(talk.whole), quantiles(talk.whole, n=20)[-1]
            growth = f"{p50 / base:.2f}" if talk.turns >= 100 else "–"
            print(f"{talk.turns:>7}{len(talk.context.history):>7}{talk.memory.pruning.turns_kept:>6}"
                  f"{talk.memory.budget.used:>9}{median(talk.loads):>10.2f}{median(talk.assemblies):>13.2f}"
                  f"{p50:>9.2f}{p95:>9.2f}{growth:>8}{await talk.peak_kb():>9}")  # fmt: skip
        await database.close()
        await owner.close()


@cache
def passages(tokens: int) -> list[str]:
    """Different texts of so many tokens each, from this repository's own prose."""
    encoded = encoding().encode_ordinary(Path("infra/decisions.md").read_text())
    starts = range(0, len(encoded) - tokens, tokens)
    return [encoding().decode(encoded[start : start + tokens]) for start in starts]


class Talk:
    """A conversation of so many turns, and the milliseconds that each further one took to load and to assemble."""

    def __init__(self, log: PostgresConversationLog, agent: Agent, conversation_id: UUID, turns: int) -> None:
        self.turns = turns
        self.loads: list[float] = []
        self.assemblies: list[float] = []
        self._log = log
        self._agent = agent
        self._conversation_id = conversation_id

    @classmethod
    async def of(cls, database: Database, owner: Database, agent: Agent, turns: int) -> Talk:
        conversation_id = uuid4()
        params = {
            "tenant_id": "acme",
            "user_id": "ada",
            "agent_id": agent.agent_id,
            "conversation_id": conversation_id,
            "turns": turns,
            "questions": passages(QUESTION_TOKENS),
            "answers": passages(ANSWER_TOKENS),
            "asked": QUESTION_TOKENS,
            "answered": ANSWER_TOKENS,
        }
        await database.run("acme", SQL["add_conversation"], params)
        await owner.run("acme", SQL["analyze"])
        return cls(PostgresConversationLog(database), agent, conversation_id, turns)

    @property
    def whole(self) -> list[float]:
        return [a + b for a, b in zip(self.loads, self.assemblies, strict=True)]

    async def take(self, *, warm: bool) -> None:
        """One more turn; a `warm` one is not counted."""
        began = time.perf_counter()
        self.context = await self._load()
        loaded = time.perf_counter()
        self.memory = assembled(self._agent, self.context, TOKENS)
        assembled_at = time.perf_counter()
        if not warm:
            self.loads.append((loaded - began) * 1000)
            self.assemblies.append((assembled_at - loaded) * 1000)

    async def peak_kb(self) -> int:
        """What one turn allocates at most."""
        tracemalloc.start()
        assembled(self._agent, await self._load(), TOKENS)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak // 1024

    async def _load(self) -> TurnContext:
        return await self._log.load_turn_context(
            "acme", "ada", self._agent.agent_id, self._conversation_id, "new", DEFAULTS
        )


def assembled(agent: Agent, context: TurnContext, tokens: Tokens) -> WorkingMemory:
    assert context.conversation
    given = Ingredients(
        agent=agent,
        message=MESSAGE,
        guidance=Guidance(),
        knowledge=Knowledge([a_chunk(rank, text) for rank, text in enumerate(passages(380)[:5], 1)]),
        recollection=Recollection([an_episode(rank, text) for rank, text in enumerate(passages(30)[:3], 1)]),
        turns=whole_turns(context.history),
        extent=LogExtent(context.conversation.total_tokens, context.conversation.turn_count),
    )
    return assemble(given, tokens, 1024)


if __name__ == "__main__":
    asyncio.run(main())
