"""Working memory of one turn, and the account of how it came about.

The account (`Section`, `Item`, `Pruning`, `Budget`) holds ids and numbers, never text: it becomes the turn's trace.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

from octopus.conversations.types import Block
from octopus.recall import Score

SUMMARY_MAX_TOKENS = 400  # of a running summary
MESSAGE_OVERHEAD = 4  # raw tokens of a message's frame in the Messages API
SectionName = Literal["tools", "system_prompt", "procedure", "knowledge", "episodes", "history", "message"]
LeftOut = Literal["below_min_score", "section_cap", "budget"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Counts tokens as the model's provider would, and rather more than fewer.

    The tokenizer at hand undercounts the provider's; `factor` (≥ 1, per model) makes up for it. Stored counts are raw,
    so that a corrected factor holds for old messages too.
    """

    raw: Callable[[str], int]
    factor: float

    def count(self, text: str) -> int:
        return self.scaled(self.raw(text))

    def scaled(self, raw_tokens: int) -> int:
        return ceil(raw_tokens * self.factor)

    def raw_within(self, tokens: int) -> int:
        """The most raw tokens whose scaled count is within `tokens`."""
        return max(0, int(tokens / self.factor))


def content_tokens(raw: Callable[[str], int], content: list[Block]) -> int:
    """Raw tokens of a message: its frame, its text, and tool calls and results as JSON."""
    return MESSAGE_OVERHEAD + sum(
        raw(block["text"] if block["type"] == "text" else json.dumps(block, ensure_ascii=False)) for block in content
    )


@dataclass(frozen=True, slots=True)
class Item:
    """One chunk, episode or procedure that was considered. `content_hash` tells later whether it has changed.

    `rule` is what matched a procedure, `decided_by` what set it apart from the next one that did.
    """

    item_id: str
    tokens: int
    score: Score
    threshold: float | None
    content_hash: str
    left_out: LeftOut | None = None
    rule: str | None = None
    decided_by: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """Tokens of one section, its header included, and the items considered for it, best first."""

    name: SectionName
    tokens: int
    items: list[Item] = field(default_factory=list)

    @property
    def included(self) -> int:
        return sum(item.left_out is None for item in self.items)


@dataclass(frozen=True, slots=True)
class Pruning:
    """What of the log is in the prompt. Seqs are None when no turn is kept."""

    strategy: str
    turns_kept: int
    turns_dropped: int
    first_seq: int | None
    last_seq: int | None
    summary_through: int = 0
    summary_failed: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens: `available` is the whole less the reserve for the answer; `used` is what the prompt holds."""

    max_working_memory_tokens: int
    output_reserve_tokens: int
    available: int
    used: int


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """What the model sees: in the shape of the Messages API, with the account of it. Lives for one turn."""

    system: list[Block]
    messages: list[dict[str, Any]]
    sections: list[Section]
    pruning: Pruning
    budget: Budget
