"""`make bench-cache`: what a provider's prompt cache makes of each layout and pruning strategy.

Simulates a conversation of 30 turns, each 750 tokens of question and answer, with memories recalled anew on every
turn. The sizes are the middles of the ranges that the reference system gives as typical: system prompt 1,750 tokens,
knowledge 1,250, episodes 300, history 60 KB per 20 turns, a procedure of 300 on every fifth turn. The cache follows
the provider's published rules (`infra.local.offline_model.prompt_cache`): byte prefixes, explicit breakpoints, 1,024
tokens at least. Prices are in prices.toml.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

from infra.local.offline_model.prompt_cache import InputUsage, PromptCache
from octopus.episodic.types import Recollection
from octopus.procedural.types import Guidance, ProcedureMatch, Step
from octopus.semantic.types import Knowledge, RecalledChunk
from octopus.tools.types import ToolSpec
from octopus.working.assembly import Ingredients, RunningSummary, assemble
from octopus.working.pruning import LogExtent, whole_turns
from octopus.working.types import Tokens
from tests.support.memories import a_chunk, a_log, a_procedure, an_agent, an_episode

TURNS = 30
TURN_TOKENS = 758  # question and answer with their frames
FROM_TURN = 5  # the first turns have little history that could be cached
MODEL = "claude-sonnet-4-6"
WORDS = ("account", "budget", "contract", "delivery", "employee", "guideline", "holiday", "invoice", "journey", "limit")

TOKENS = Tokens(lambda text: -(-len(text.encode()) // 4), 1.0)  # four bytes each, as the simulated provider counts
TOOLS = [ToolSpec(f"tool_{n}", "word " * 40, {"type": "object", "properties": {}}) for n in range(4)]


@dataclass
class Sum:
    """Input tokens of the counted turns."""

    uncached: int = 0
    written: int = 0
    read: int = 0

    def add(self, usage: InputUsage) -> None:
        self.uncached += usage.uncached
        self.written += usage.written
        self.read += usage.read

    @property
    def total(self) -> int:
        return self.uncached + self.written + self.read


def prose(seed: object, tokens: int) -> str:
    """Text of about that many tokens, the same for the same seed."""
    random = Random(str(seed))
    text = ""
    while len(text) < 4 * tokens:
        text += random.choice(WORDS) + " "
    return text


def simulate(layout: Literal["documented", "cache"], strategy: str, budget: int) -> Sum:
    agent = an_agent(
        prose("system", 1_750),
        context_layout=layout,
        pruning_strategy=strategy,
        max_working_memory_tokens=budget,
    )
    said = [(prose(("q", n), 100), 0, prose(("a", n), 650)) for n in range(TURNS)]
    cache, total = PromptCache(), Sum()
    summary: RunningSummary | None = None
    for turn in range(TURNS):
        turns = [replace(unit, tokens=TURN_TOKENS) for unit in whole_turns(a_log(said[:turn]))]
        given = Ingredients(
            agent=agent,
            message=said[turn][0],
            guidance=Guidance(procedure(turn) if turn % 5 == 4 else None),
            knowledge=Knowledge([chunk(turn, rank) for rank in range(1, 6)]),
            recollection=Recollection([an_episode(rank, prose(("e", turn, rank), 100)) for rank in range(1, 4)]),
            turns=turns,
            extent=LogExtent(sum(unit.tokens for unit in turns), turn),
            tool_tokens=TOKENS.count(str(TOOLS)),
        )
        given = given.after(summary) if summary else given
        memory = assemble(given, TOKENS, 1_024)
        through = (memory.pruning.first_seq or 1) - 1
        if strategy == "summarize" and through > (summary.through if summary else 0):
            summary = RunningSummary(prose(("s", turn), 400), through)
            memory = assemble(given.after(summary), TOKENS, 1_024)
        usage = cache.account(request(memory.system, memory.messages))
        if turn + 1 >= FROM_TURN:
            total.add(usage)
    return total


def request(system: list[Any], messages: list[Any]) -> dict[str, Any]:
    return {"model": MODEL, "tools": [asdict(tool) for tool in TOOLS], "system": system, "messages": messages}


def chunk(turn: int, rank: int) -> RecalledChunk:
    return replace(a_chunk(rank, prose(("c", turn, rank), 250)), token_count=250)


def procedure(turn: int) -> ProcedureMatch:
    return a_procedure(f"procedure_{turn}", "", *(Step(n, prose(("p", turn, n), 70)) for n in range(1, 5)))


def main() -> None:
    price = tomllib.loads(Path(__file__).with_name("prices.toml").read_text())[MODEL]
    print(f"{TURNS} turns, from turn {FROM_TURN} on; dollars are of the input of {MODEL}\n")
    heads = ("budget", "strategy", "layout", "input", "read", "share", "$", "of documented")
    print("{:>8}  {:<16}{:<12}{:>9}{:>9}{:>8}{:>9}{:>15}".format(*heads))
    for budget in (150_000, 16_000):
        for strategy in ("fifo", "sliding_window", "summarize"):
            documented = 0.0
            for layout in ("documented", "cache"):
                total = simulate(layout, strategy, budget)  # type: ignore[arg-type]
                dollars = (
                    total.uncached * price["input"]
                    + total.written * price["cache_write"]
                    + total.read * price["cache_read"]
                ) / 1e6
                documented = documented or dollars
                print(
                    f"{budget:>8}  {strategy:<16}{layout:<12}{total.total:>9}{total.read:>9}"
                    f"{total.read / total.total:>8.1%}{dollars:>9.4f}{dollars / documented:>15.2f}"
                )


if __name__ == "__main__":
    main()
