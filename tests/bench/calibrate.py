"""Fit the calibration of an embedding model: which cosine means which relevance.

    python -m tests.bench.calibrate DATA

Relevance is the probability that an item is relevant, given its cosine with the query, where one item in three is.
The prior is what recall meets: of the five nearest abstracts of Cranfield, 31 % are relevant (MiniLM). The fit is a
logistic regression on the cosines of relevant and of all other items, each data set and each class weighing the
same whatever its size; the printed knots are that curve at chosen cosines, to be pasted into the embedder.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octopus.cloud.minilm import MiniLmEmbedder
from octopus.embedding import Embedder
from tests.bench.recall_data import Collection, cranfield, locomo

PRIOR = 1 / 3
COSINES = (0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8)
TOP = 5  # semantic_top_k

Array = NDArray[np.float64]
Scored = tuple[Array, NDArray[np.bool_]]  # cosines (queries, items), and which of them are relevant


async def scored(collection: Collection, embedder: Embedder) -> Scored:
    """Cosines of every query with every item."""
    items = np.array(await embedder.embed([item.said for item in collection.items]))
    queries = np.array(await embedder.embed([question.text for question in collection.questions]))
    relevant = np.zeros((len(queries), len(items)), dtype=bool)
    for row, question in enumerate(collection.questions):
        relevant[row, list(question.relevant)] = True
    return queries @ items.T, relevant


def fit(data_sets: list[list[Scored]]) -> tuple[float, float]:
    """Slope and intercept of the log odds of relevance over cosine (Newton's method)."""
    x, y, weight = [], [], []
    for data_set in data_sets:
        cosines = np.concatenate([c.ravel() for c, _ in data_set])
        relevant = np.concatenate([r.ravel() for _, r in data_set])
        x.append(cosines)
        y.append(relevant)
        weight.append(np.where(relevant, PRIOR / relevant.sum(), (1 - PRIOR) / (~relevant).sum()))
    inputs = np.stack([np.concatenate(x), np.ones(sum(map(len, x)))], axis=1)
    outcome, weights = np.concatenate(y).astype(float), np.concatenate(weight)
    beta = np.zeros(2)
    for _ in range(30):
        p = 1 / (1 + np.exp(-inputs @ beta))
        curvature = (inputs * (weights * p * (1 - p))[:, None]).T @ inputs
        beta += np.linalg.solve(curvature, inputs.T @ (weights * (outcome - p)))
    return float(beta[0]), float(beta[1])


def report(name: str, data_set: list[Scored], slope: float, intercept: float) -> None:
    """What a minimum relevance does: how much of the evidence passes, of the rest, and of the five nearest."""
    evidence = np.concatenate([c[r] for c, r in data_set])
    others = np.concatenate([c[~r] for c, r in data_set])
    order = [np.argsort(-c, axis=1, kind="stable")[:, :TOP] for c, _ in data_set]
    nearest = np.concatenate([np.take_along_axis(c, o, 1).ravel() for (c, _), o in zip(data_set, order, strict=True)])
    hits = np.concatenate([np.take_along_axis(r, o, 1).ravel() for (_, r), o in zip(data_set, order, strict=True)])
    for minimum in (0.6, 0.65, 0.7, 0.75, 0.8):
        bound = (math.log(minimum / (1 - minimum)) - intercept) / slope
        passed = nearest >= bound
        balanced = (evidence >= bound).mean() * PRIOR
        balanced /= balanced + (others >= bound).mean() * (1 - PRIOR)
        print(
            f"| {name} | {minimum:.2f} | {bound:.3f} | {balanced:.3f} | {(evidence >= bound).mean():.3f} "
            f"| {(others >= bound).mean():.4f} | {hits[passed].mean():.3f} | {hits[passed].sum() / hits.sum():.3f} |"
        )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    directory = parser.parse_args().data
    embedder = MiniLmEmbedder()
    dialogues = [
        await scored(Collection(c.name, c.items, [q for q in c.questions if q.category != 5]), embedder)
        for c in locomo(directory)
    ]
    abstracts = [await scored(c, embedder) for c in cranfield(directory)]
    for name, data_sets in (("LoCoMo", [dialogues]), ("Cranfield", [abstracts]), ("both", [dialogues, abstracts])):
        slope, intercept = fit(data_sets)
        bound = (math.log(0.7 / 0.3) - intercept) / slope
        print(f"{name}: log odds = {slope:.2f} cosine {intercept:+.2f}; 0.7 is cosine {bound:.3f}")
    knots = [(c, round(1 / (1 + math.exp(-slope * c - intercept)), 3)) for c in COSINES]
    print("knots:", ((-1.0, 0.0), *knots, (1.0, 1.0)))
    print("\n| data | minimum | cosine | precision, 1 in 3 | evidence above | others above ", end="")
    print("| precision of the top 5 above | kept of the top 5's hits |")
    print("|---|---|---|---|---|---|---|---|")
    report("LoCoMo", dialogues, slope, intercept)
    report("Cranfield", abstracts, slope, intercept)


if __name__ == "__main__":
    asyncio.run(main())
