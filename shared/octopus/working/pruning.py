"""Which turns of the log stay in the prompt.

The unit is a whole turn: the user's message, every tool call with its results, and the answer. Cuts lie on a grid over
the log (a multiple of `stride` tokens, of `step` turns), so that a full conversation is re-cut only when a grid line is
crossed, and the provider's prompt cache survives the turns between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from octopus.conversations.types import Message
from octopus.memory_config import STRIDES_PER_BUDGET, MemoryConfig

STEPS_PER_WINDOW = 3  # a window slides by a third of itself


@dataclass(frozen=True, slots=True)
class TurnUnit:
    """A turn of the log with the raw tokens of all its messages."""

    messages: tuple[Message, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class LogExtent:
    """The whole log that the units are the end of: raw tokens and number of turns."""

    tokens: int
    turns: int


def whole_turns(messages: Sequence[Message]) -> list[TurnUnit]:
    """The turns of a stretch of the log; one whose beginning is missing is left out."""
    groups = (tuple(group) for _, group in groupby(messages, key=lambda message: message.turn_id))
    return [
        TurnUnit(group, sum(message.token_count for message in group)) for group in groups if group[0].role == "user"
    ]


def prune(
    units: Sequence[TurnUnit], extent: LogExtent, config: MemoryConfig, tokens: int, folded_through: int = 0
) -> Sequence[TurnUnit]:
    """The newest turns within `tokens` (raw), by the agent's strategy.

    `units` are those that follow the message `folded_through`, or as many of the newest of them as can be kept.
    `min_history_turns` are kept even where the grid would drop them, unless they do not fit; a turn is never split.
    """
    start = _fitting(units, tokens)
    if config.pruning_strategy == "sliding_window":
        start = max(start, _window_start(units, extent.turns, config.sliding_window_turns))
    if start > 0 or (units and units[0].messages[0].seq > folded_through + 1):
        on_grid = _grid_start(units, extent.tokens, tokens, _stride(config))
        start = max(start, min(on_grid, len(units) - config.min_history_turns))
    return units[start:]


def least_tokens(units: Sequence[TurnUnit], config: MemoryConfig) -> int:
    """Raw tokens of the turns that are kept before anything else of recalled memory."""
    return sum(unit.tokens for unit in units[max(0, len(units) - config.min_history_turns) :])


def _stride(config: MemoryConfig) -> int:
    return max(1, config.input_budget // STRIDES_PER_BUDGET)


def _fitting(units: Sequence[TurnUnit], tokens: int) -> int:
    """Index of the first unit of the longest end that fits."""
    start = len(units)
    while start > 0 and units[start - 1].tokens <= tokens:
        start -= 1
        tokens -= units[start].tokens
    return start


def _grid_start(units: Sequence[TurnUnit], log_tokens: int, tokens: int, stride: int) -> int:
    """Index of the first unit behind the grid line at or after the point where the log begins to fit."""
    cut = -(-max(0, log_tokens - tokens) // stride) * stride
    begins_at = log_tokens
    for start in range(len(units), 0, -1):
        begins_at -= units[start - 1].tokens
        if begins_at < cut:
            return start
    return 0


def _window_start(units: Sequence[TurnUnit], turns: int, window: int) -> int:
    """Index of the first unit of a window of at most `window` turns that slides in steps."""
    step = max(1, window // STEPS_PER_WINDOW)
    first_turn = -(-max(0, turns - window) // step) * step
    return max(0, first_turn - (turns - len(units)))
