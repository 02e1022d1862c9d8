"""How far the tokenizer at hand undercounts a model's provider, learned from the usage that the provider reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from octopus.working.types import Tokens

LEAST, MOST = 1.0, 3.0
FALL = 0.05  # share of the difference by which a factor falls per turn; it rises at once
LEARN_FROM_TOKENS = 4_000  # raw tokens of the shortest prompt that corrects a factor
WORTH_WRITING = 0.005  # smaller corrections are not worth a write


class FactorStore(Protocol):
    """The factor of each model, shared by all execution environments; a turn reads it with its log."""

    async def correct_factor(self, model: str, before: float, after: float) -> None:
        """Replace `before`, or whatever lower factor it has become since; otherwise leave it."""
        ...


def corrected(factor: float, observed: float) -> float:
    """The factor after a turn whose provider counted `observed` times our raw count.

    An undercount can overflow a context window, an overcount only wastes a little of it: so the factor rises to what
    was observed at once and falls slowly. Bounded, so that no single report can make it absurd.
    """
    bounded = min(MOST, max(LEAST, observed))
    return bounded if bounded > factor else factor + FALL * (bounded - factor)


class TokenFactors:
    """Gives a model's token counter and corrects it; `initial` holds until something has been learned."""

    def __init__(self, store: FactorStore, raw: Callable[[str], int], initial: float) -> None:
        self._store = store
        self._raw = raw
        self.initial = initial

    def tokens(self, factor: float) -> Tokens:
        """The counter of a model with this factor."""
        return Tokens(self._raw, factor)

    async def learn(self, model: str, factor: float, raw_tokens: int, provider_tokens: int) -> None:
        """Learn from one turn: the factor it was taken with, what we counted, raw, and what the provider did.

        Short prompts teach nothing: a provider adds a few hundred tokens of its own, which a factor would multiply.
        """
        if raw_tokens < LEARN_FROM_TOKENS or provider_tokens <= 0:
            return
        after = corrected(factor, provider_tokens / raw_tokens)
        if abs(after - factor) >= WORTH_WRITING:
            await self._store.correct_factor(model, factor, after)
