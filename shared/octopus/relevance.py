"""Relevance: one scale for scores, whatever the embedding model.

A raw cosine means different things in different models: 0.7 is rare in one and noise in another. A
`Calibration` is a monotone, piecewise linear map from cosine to relevance in [0, 1], measured per model. It is
inverted into a cosine bound for SQL, so that a minimum relevance is applied by the database.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

Vector = list[float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Knots (cosine, relevance), both strictly increasing, from (-1, 0) to (1, 1)."""

    knots: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if self.knots[0] != (-1.0, 0.0) or self.knots[-1] != (1.0, 1.0):
            raise ValueError("a calibration runs from (-1, 0) to (1, 1)")
        if any(a[0] >= b[0] or a[1] >= b[1] for a, b in zip(self.knots, self.knots[1:], strict=False)):
            raise ValueError("the knots of a calibration are strictly increasing in both coordinates")

    def relevance(self, cosine: float) -> float:
        """Relevance in [0, 1] of a cosine in [-1, 1]; values outside are clamped."""
        return _interpolate(self.knots, cosine)

    def cosine(self, relevance: float) -> float:
        """The least cosine whose relevance is at least `relevance`."""
        return _interpolate([(y, x) for x, y in self.knots], relevance)


def _interpolate(knots: Sequence[tuple[float, float]], x: float) -> float:
    if x <= knots[0][0]:
        return knots[0][1]
    if x >= knots[-1][0]:
        return knots[-1][1]
    right = bisect_right(knots, (x, float("inf")))
    (x0, y0), (x1, y1) = knots[right - 1], knots[right]
    return y0 + (x - x0) * (y1 - y0) / (x1 - x0)
