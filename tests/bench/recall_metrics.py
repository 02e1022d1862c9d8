"""nDCG@10, shares of evidence, and how sure a difference is."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

DEPTH = 10
_DISCOUNT = [1 / math.log2(rank + 2) for rank in range(DEPTH)]


def ndcg(ranked: Sequence[int], relevant: Collection[int]) -> float:
    """Normalised discounted cumulative gain of the first ten, relevance being 0 or 1."""
    gain = sum(d for d, item in zip(_DISCOUNT, ranked, strict=False) if item in relevant)
    return gain / sum(_DISCOUNT[: len(relevant)])


def found(ranked: Sequence[int], relevant: Collection[int], depth: int) -> float:
    """The share of the relevant that is among the first `depth`."""
    return len(set(ranked[:depth]) & set(relevant)) / len(relevant)


def sessions_by_best_item(ranked: Sequence[int], sessions: Sequence[int]) -> list[int]:
    """Sessions in the order of their best items."""
    return list(dict.fromkeys(sessions[item] for item in ranked))


def interval(ours: NDArray[np.float64], theirs: NDArray[np.float64], samples: int = 10_000) -> tuple[float, float]:
    """The 95 % interval of the mean difference, by paired bootstrap over the questions."""
    difference = ours - theirs
    drawn = np.random.default_rng(7).integers(0, len(difference), (samples, len(difference)))
    low, high = np.percentile(difference[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
