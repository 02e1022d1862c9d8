"""Assemble working memory: what was recalled, what was said and what is asked, within the budget.

Pure: same input, same bytes. What does not fit is dropped in this order: history down to `min_history_turns`, then the
lowest-ranked chunks and episodes, whole, then the rest of history. System prompt, procedure and message always stay;
if they alone exceed the budget the turn is refused with the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from octopus.agents.types import Agent
from octopus.episodic.types import Recollection
from octopus.errors import BudgetExceeded
from octopus.memory_config import MemoryConfig
from octopus.procedural.types import Guidance, ProcedureMatch
from octopus.semantic.types import Knowledge
from octopus.working.layout import Breakpoints, Parts, lay_out
from octopus.working.pruning import LogExtent, TurnUnit, least_tokens, prune
from octopus.working.sections import SUMMARY_HEADER, procedure_text
from octopus.working.selection import drop_to_fit, select_episodes, select_knowledge, version_hash
from octopus.working.types import (
    MESSAGE_OVERHEAD,
    SUMMARY_MAX_TOKENS,
    Budget,
    Item,
    Pruning,
    Section,
    Tokens,
    WorkingMemory,
)


@dataclass(frozen=True, slots=True)
class RunningSummary:
    """The folded beginning of the conversation, up to and including the message `through`."""

    text: str
    through: int


@dataclass(frozen=True, slots=True)
class Ingredients:
    """Everything a turn may show to the model.

    `turns` are the newest turns of the log, oldest first. `tool_tokens` are those of the tools' descriptions,
    `exchange_tokens` those of the tool calls and results of this turn so far.
    """

    agent: Agent
    message: str
    guidance: Guidance
    knowledge: Knowledge
    recollection: Recollection
    turns: Sequence[TurnUnit]
    extent: LogExtent
    summary: RunningSummary | None = None
    tool_tokens: int = 0
    exchange_tokens: int = 0

    def after(self, summary: RunningSummary) -> Ingredients:
        """The same with `summary` in the place of the turns that it covers."""
        turns = [turn for turn in self.turns if turn.messages[0].seq > summary.through]
        return replace(self, summary=summary, turns=turns)


def assemble(given: Ingredients, tokens: Tokens, cache_minimum_tokens: int) -> WorkingMemory:
    """Working memory within ``input_budget`` of the agent's configuration.

    `cache_minimum_tokens` is the shortest prefix that the model caches. Raises `BudgetExceeded`.
    """
    config = given.agent.memory_config
    match = given.guidance.match
    procedure = _procedure_text(match) if match else None
    tools = Section("tools", given.tool_tokens)
    system_prompt = Section("system_prompt", tokens.count(given.agent.system_prompt))
    guidance = Section("procedure", tokens.count(procedure) if procedure else 0, _items(given.guidance, config, tokens))
    message = Section("message", tokens.count(given.message) + tokens.scaled(MESSAGE_OVERHEAD) + given.exchange_tokens)
    free = _free_beside([tools, system_prompt, guidance, message], config)

    summary_tokens = tokens.count(SUMMARY_HEADER + given.summary.text) if given.summary else 0
    least_history = summary_tokens + tokens.scaled(least_tokens(given.turns, config))
    recalled = [
        select_knowledge(given.knowledge, config, tokens),
        select_episodes(given.recollection, config, tokens),
    ]
    recalled = drop_to_fit(recalled, free - least_history if least_history <= free else free)
    free -= sum(selection.tokens for selection in recalled)

    summary = given.summary if summary_tokens <= free else None
    free -= summary_tokens if summary else 0
    folded_through = given.summary.through if given.summary else 0
    kept = prune(given.turns, given.extent, config, tokens.raw_within(free), folded_through)
    if config.pruning_strategy == "summarize" and len(kept) < len(given.turns):
        # Room for the summary of what is dropped now, lest it push out turns that it does not cover.
        room = min(max(0, tokens.scaled(SUMMARY_MAX_TOKENS) - summary_tokens), free // 4)
        kept = prune(given.turns, given.extent, config, tokens.raw_within(free - room), folded_through)
    history = Section(
        "history",
        (summary_tokens if summary else 0) + tokens.scaled(sum(turn.tokens for turn in kept)),
    )

    prefix = tools.tokens + system_prompt.tokens
    knowledge, episodes = recalled
    system, messages = lay_out(
        Parts(
            system_prompt=given.agent.system_prompt,
            procedure=procedure,
            knowledge=knowledge.text,
            episodes=episodes.text,
            summary=summary.text if summary else None,
            history=[entry for turn in kept for entry in turn.messages],
            message=given.message,
        ),
        config.context_layout,
        Breakpoints(
            system=prefix >= cache_minimum_tokens,
            history=_is_read_again(given) and bool(kept) and prefix + history.tokens >= cache_minimum_tokens,
        ),
    )
    sections = [tools, system_prompt, guidance, knowledge.section(), episodes.section(), history, message]
    used = sum(section.tokens for section in sections)
    return WorkingMemory(
        system=system,
        messages=messages,
        sections=sections,
        pruning=_pruning(given, kept, summary),
        budget=Budget(config.max_working_memory_tokens, config.output_reserve_tokens, config.input_budget, used),
    )


def _is_read_again(given: Ingredients) -> bool:
    """Whether a later call can read the prefix that ends with the history; writing it for none costs a quarter more.

    In the layout `cache` the next turn does. In `documented` new memories stand before the history on every turn, so
    that only the next round of a tool loop does.
    """
    return given.agent.memory_config.context_layout == "cache" or given.exchange_tokens > 0


def _free_beside(fixed: Sequence[Section], config: MemoryConfig) -> int:
    """Tokens left beside what always stays, the reserve for message and tool results included."""
    by_name = {section.name: section.tokens for section in fixed}
    message = max(by_name["message"], config.reserved_for_current)
    free = config.input_budget - sum(by_name.values()) + by_name["message"] - message
    if free < 0:
        raise BudgetExceeded(
            f"System prompt ({by_name['system_prompt']} tokens), tools ({by_name['tools']}), procedure "
            f"({by_name['procedure']}) and message ({message}, the reserve for tool results included) exceed the "
            f"{config.input_budget} tokens that the agent has for input: shorten the message or the system prompt, or "
            f"raise max_working_memory_tokens ({config.max_working_memory_tokens}).",
            budget=config.input_budget,
            **by_name,
        )
    return free


def _items(guidance: Guidance, config: MemoryConfig, tokens: Tokens) -> list[Item]:
    def item(match: ProcedureMatch, included: bool) -> Item:
        return Item(
            item_id=str(match.procedure.procedure_id),
            tokens=tokens.count(_procedure_text(match)),
            score=match.score,
            threshold=config.procedural_min_score if match.rule == "embedding" else None,
            content_hash=version_hash(match.procedure.version),
            left_out=None if included else "below_min_score",
            rule=match.rule,
            decided_by=match.decided_by,
        )

    chosen = [item(guidance.match, True)] if guidance.match else []
    return chosen + [item(near_miss, False) for near_miss in guidance.near_misses]


def _procedure_text(match: ProcedureMatch) -> str:
    return procedure_text(match.procedure.name, match.procedure.description, match.procedure.steps)


def _pruning(given: Ingredients, kept: Sequence[TurnUnit], summary: RunningSummary | None) -> Pruning:
    return Pruning(
        strategy=given.agent.memory_config.pruning_strategy,
        turns_kept=len(kept),
        turns_dropped=given.extent.turns - len(kept),
        first_seq=kept[0].messages[0].seq if kept else None,
        last_seq=kept[-1].messages[-1].seq if kept else None,
        summary_through=summary.through if summary else 0,
    )
