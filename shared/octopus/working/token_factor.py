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
    """The factor of each model, shared by all execution environments."""

    async def get_factor(self, model: str) -> float | None: ...

    async def put_factor(self, model: str, factor: float) -> None: ...


def corrected(factor: float, observed: float) -> float:
    """The factor after a turn whose provider counted `observed` times our raw count.

    An undercount can overflow a context window, an overcount only wastes a little of it: so the factor rises to what
    was observed at once and falls slowly. Bounded, so that no single report can make it absurd.
    """
    bounded = min(MOST, max(LEAST, observed))
    return bounded if bounded > factor else factor + FALL * (bounded - factor)


class TokenFactors:
    """Gives a model's token counter and corrects it."""

    def __init__(self, store: FactorStore, raw: Callable[[str], int], initial: float) -> None:
        self._store = store
        self._raw = raw
        self._initial = initial
        self._known: dict[str, float] = {}

    async def tokens(self, model: str) -> Tokens:
        """The counter for `model`; read once per execution environment, then kept and corrected here."""
        if model not in self._known:
            self._known[model] = await self._store.get_factor(model) or self._initial
        return Tokens(self._raw, self._known[model])

    async def learn(self, model: str, raw_tokens: int, provider_tokens: int) -> None:
        """Learn from one turn: what we counted, raw, and what the provider did.

        Short prompts teach nothing: a provider adds a few hundred tokens of its own, which a factor would multiply.
        """
        if raw_tokens < LEARN_FROM_TOKENS or provider_tokens <= 0:
            return
        before = self._known.get(model, self._initial)
        after = corrected(before, provider_tokens / raw_tokens)
        if abs(after - before) >= WORTH_WRITING:
            self._known[model] = after
            await self._store.put_factor(model, after)
