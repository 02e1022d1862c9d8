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
from uuid import uuid4

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
RUNS = 200
QUESTION_TOKENS, ANSWER_TOKENS = 100, 1_500
MESSAGE = "What did the report say about open positions?"
CONFIG = MemoryConfig()
DEFAULTS = TurnDefaults(
    "claude", 1.25, CONFIG.max_working_memory_tokens, CONFIG.output_reserve_tokens, CONFIG.min_history_turns
)
SQL = load_queries(__package__, "context.sql")


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory, with_server(Path(directory) / "data") as server:
        database = Database.at(await prepare(server), pool_size=2)
        owner = Database.at(server.dsn("octopus_bench"), pool_size=1)
        agent = await PostgresAgentStore(database).create_agent("acme", "aria", "", passages(1_000)[0], None, {})
        print(f"{'turns':>7}{'rows':>7}{'kept':>6}{'tokens':>9}{'load ms':>10}{'assemble ms':>13}"
              f"{'p50 ms':>9}{'p95 ms':>9}{'growth':>8}{'peak KB':>9}")  # fmt: skip
        base = 0.0
        for turns in LENGTHS:
            row = await measure(database, owner, agent, turns)
            base = row.p50 if turns == 100 else base
            growth = f"{row.p50 / base:.2f}" if base else "–"
            print(f"{turns:>7}{row.rows:>7}{row.kept:>6}{row.tokens:>9}{row.load:>10.2f}{row.assemble:>13.2f}"
                  f"{row.p50:>9.2f}{row.p95:>9.2f}{growth:>8}{row.peak_kb:>9}")  # fmt: skip
        await database.close()
        await owner.close()


@cache
def passages(tokens: int) -> list[str]:
    """Different texts of so many tokens each, from this repository's own prose."""
    encoded = encoding().encode_ordinary(Path("infra/decisions.md").read_text())
    starts = range(0, len(encoded) - tokens, tokens)
    return [encoding().decode(encoded[start : start + tokens]) for start in starts]


class Row:
    """One line of the table; milliseconds are medians unless they say otherwise."""

    def __init__(
        self, context: TurnContext, memory: WorkingMemory, loads: list[float], assemblies: list[float]
    ) -> None:
        whole = [a + b for a, b in zip(loads, assemblies, strict=True)]
        self.rows = len(context.history)
        self.kept = memory.pruning.turns_kept
        self.tokens = memory.budget.used
        self.load, self.assemble, self.p50 = median(loads), median(assemblies), median(whole)
        self.p95 = quantiles(whole, n=20)[-1]
        self.peak_kb = 0


async def measure(database: Database, owner: Database, agent: Agent, turns: int) -> Row:
    log = PostgresConversationLog(database)
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

    async def load() -> TurnContext:
        return await log.load_turn_context("acme", "ada", agent.agent_id, conversation_id, "new", DEFAULTS)

    tokens = Tokens(count_tokens, DEFAULTS.token_factor)
    loads, assemblies = [], []
    for _ in range(RUNS + 5):
        began = time.perf_counter()
        context = await load()
        loaded = time.perf_counter()
        memory = assembled(agent, context, tokens)
        loads.append((loaded - began) * 1000)
        assemblies.append((time.perf_counter() - loaded) * 1000)
    row = Row(context, memory, loads[5:], assemblies[5:])
    tracemalloc.start()
    assembled(agent, await load(), tokens)
    row.peak_kb = tracemalloc.get_traced_memory()[1] // 1024
    tracemalloc.stop()
    return row


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
