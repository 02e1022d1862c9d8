"""How the searched memories weigh meaning and words.

An item and a query have a *cosine* (of their vectors) and a *share*: BM25 as the part that the item has of all the
information in the query's words, in [0, 1]. Both are on one scale for all queries and scopes, so a weighted sum ranks,
and needs no normalisation over the candidates. The weights are few and round; `tests/bench/recall.py` measures them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# A share of 1 is as much evidence as 0.3 of cosine: the most likely value, with the calibration of the shipped
# embedder held fixed, on LoCoMo (named speakers) and on Cranfield alike.
SHARE_AS_COSINE = 0.3


def evidence(cosine: float, share: float) -> float:
    """The cosine that an item would need to be as relevant without a word in common; calibrate it to get relevance."""
    return cosine + SHARE_AS_COSINE * share


@dataclass(frozen=True, slots=True)
class DialogueWeights:
    """Ranking of dialogue (`episode_facts`): BM25 of a trace's window and of its session, and two cosines.

    The words of a trace are its content's and those of its session's day by UTC: 7 May 2023, 2023-05-07.

    Measured on LoCoMo's development conversations, nDCG@10 of turns with and without speakers' names: cosine alone
    .340 and .146; BM25 of the turn .503 and .476; of its window .565 and .543; with the session .569 and .552; with the
    cosine of turn and window .595 and .548; with that of the best sentence in the turn's place .612 and .556 (in
    memory; through the production query .617 and .559); with the day's words .631 and .574, of sessions .851 and .833
    (.833 and .817 without), all of it from the 41 of 495 questions that name a month or a year; with a session's
    weight of .5 instead of .3, .636 and .573, of sessions .851 and .838; slashes as blanks +-.001.
    """

    session: float = 0.5  # of a session's BM25, beside its traces'
    share: float = 1.5  # of the share, beside the cosines' sum of 1
    part: float = 0.25  # of the cosine of the best sentence; the rest is the window's
    candidates: int = 24  # whose sentences are compared; they rank as well as when all are


@dataclass(frozen=True, slots=True)
class KnowledgeWeights:
    """Ranking of chunks: share and cosine alike, then once more with what the best have in common, and with the support
    that these give each other.

    The second look is pseudo-relevance feedback (Rocchio 1971): the query is widened by the mean vector and by the most
    telling terms of the first `leaders`. The support is score regularisation (Diaz 2005): a score leans on the mean of
    the other peers' scores, weighted by likeness. Cranfield's development queries, nDCG@10: cosine .392, BM25 .378,
    their sum .431, with the second look .457, with the support .472. Where neighbours of one document support each
    other it neither gains nor harms: abstracts as three chunks each .418 and .421, LoCoMo's turns as chunks .573 and
    .571, without speakers' names .446 and .453. It costs .5 ms; 50 peers are as good, for 1.5 ms.
    """

    share: float = 1.0
    candidates: int = 50
    leaders: int = 5
    centroid: float = 0.5  # of the leaders' mean vector, beside the query's
    terms: int = 40
    term: float = 0.3  # of the most telling new term, beside the query's own
    widened_share: float = 2.0  # of the share of the widened query, which is smaller
    peers: int = 30  # that support each other
    sharpness: float = 20.0  # the support of a peer falls by e with every .05 of cosine
    support: float = 0.3  # of the peers' mean score, beside its own


def rarest(terms: Sequence[int], counts: Sequence[int], budget: int) -> list[int]:
    """The rarest terms, given with their counts from rare to frequent, whose postings together stay within `budget`;
    one at least. A frequent word tells little and costs much, so nothing is found by it alone."""
    chosen: list[int] = []
    spent = 0
    for term, count in zip(terms, counts, strict=True):
        spent += count
        if chosen and spent > budget:
            break
        chosen.append(term)
    return chosen
