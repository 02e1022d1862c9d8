"""Search among the chunks of agents, in PostgreSQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from uuid import UUID

from pgvector import HalfVector

from octopus.cloud.database import Database, Params, Row, Transaction
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.ranking import KnowledgeWeights, rarest
from octopus.relevance import Vector
from octopus.semantic.types import Hit, SearchMode

_SQL = load_queries(__package__, "search.sql")
_WEIGHTS = KnowledgeWeights()
# Of the dimensions that have an index, which is on an expression with the number in it: no parameter can stand for it.
NEAREST = {n: _SQL["nearest"].replace("{dimensions}", str(n)) for n in (256, 384, 512, 1024)}
# Up to so many chunks a scan is exact and, in a table of `WALKED` chunks, takes no more processor time than the index:
# 2 µs for each chunk of the scope, against 20 µs for each that is passed on the way to `INDEXED` (`_is_scanned`).
EXACT_TO, WALKED = 10_000, 100_000
INDEXED, INDEXED_OF = 100, 50_000  # candidates from the vectors' index, and of how many chunks (`_indexed`)
WORDED = 150  # candidates from the words' index: more, for those that have one word are alike to it
POSTINGS = 1_000  # chunks that are looked at for the rarest words of a query
_ATTEMPTS = 3


class PostgresKnowledgeSearch:
    """Implements `octopus.semantic.ports.KnowledgeSearch`.

    A scope of up to `exact_to` chunks is scanned, in a table of very many chunks also a larger one. Otherwise
    candidates come from the HNSW index and from the postings of the rarest words; where the index, behind its filters,
    yields too few, the scope is scanned.
    """

    def __init__(self, database: Database, space: EmbeddingSpace, *, exact_to: int = EXACT_TO) -> None:
        self._database = database
        self._space = space
        self._exact_to = exact_to

    async def search(
        self, tenant_id: str, agent_ids: Sequence[UUID], text: str, vector: Vector, mode: SearchMode, limit: int
    ) -> list[Hit]:
        hybrid = mode == "hybrid"
        params: Row = {
            "tenant_id": tenant_id,
            "agent_ids": list(agent_ids),
            "space_id": await self._space.id(),
            "text": text,
            "vector": HalfVector(vector),  # as stored: a cast would be made anew for each row
            "share": _WEIGHTS.share if hybrid else 0.0,
            "candidates": max(limit, _WEIGHTS.candidates),
            "limit": limit,
        }
        async with self._database.transaction(tenant_id) as tx:
            _, (words,) = await tx.each((_SQL["one_plan"], {}), (_SQL["query_words"], params))
            params |= words
            for _ in range(_ATTEMPTS):
                keys = await self._candidates(tx, params, len(vector), hybrid)
                rows = await tx.all(_SQL["by_meaning_and_words" if hybrid else "by_meaning"], params | _named(keys))
                if len(rows) == min(limit, len(keys)):
                    break  # else a document was replaced between the two statements
        return [Hit(**row) for row in rows]

    async def _candidates(self, tx: Transaction, params: Row, dimensions: int, hybrid: bool) -> list[Row]:
        nearest = NEAREST.get(dimensions)
        if nearest is not None and not self._is_scanned(params["chunks"], params["everywhere"]):
            indexed = _indexed(params["chunks"])
            wide: Params = {**params, "candidates": indexed}
            rare = rarest(params["terms"] or [], params["counts"] or [], POSTINGS) if hybrid else []
            worded, _, near, _ = await tx.each(
                (_SQL["with_words"], {**params, "terms": rare, "candidates": WORDED}),
                (_SQL["walk_indexes"], {"ef_search": str(2 * indexed)}),
                (nearest, wide),
                (_SQL["as_usual"], {}),
            )
            if len(near) >= min(indexed, params["chunks"]):
                return list({(row["document_id"], row["ordinal"]): row for row in (*near, *worded)}.values())
        return await tx.all(_SQL["scan"], params)

    def _is_scanned(self, chunks: int, everywhere: float) -> bool:
        """The index is common to all tenants: the smaller the share of a scope, the more of it is walked in vain. Both
        ways cost the same where the scope grows with the square root of the table."""
        return chunks <= self._exact_to * max(1.0, math.sqrt(everywhere / WALKED))


def _indexed(chunks: int) -> int:
    """How many of a scope's chunks to take from the index, which looks at twice as many: the more chunks, the more of
    them are nearer than one that the words make best. Of 50,000 chunks 100 are as good as 200; of 500,000 they hold .69
    of the ten best by both, and 464 hold .99."""
    return round(INDEXED * min(5.0, math.pow(max(1.0, chunks / INDEXED_OF), 2 / 3)))


def _named(keys: Sequence[Row]) -> Row:
    """The parameters of the last statement."""
    return _FEEDBACK | {
        "documents": _array(key["document_id"] for key in keys),
        "generations": _array(key["generation"] for key in keys),
        "ordinals": _array(key["ordinal"] for key in keys),
    }


def _array(values: Iterable[UUID | int]) -> str:
    """The literal. The driver would look at each element, of hundreds, for what has to be quoted: 3 ms of a search."""
    return f"{{{','.join(map(str, values))}}}"


_FEEDBACK: Row = {
    "leaders": _WEIGHTS.leaders,
    "centroid": _WEIGHTS.centroid,
    "terms_added": _WEIGHTS.terms,
    "term_weight": _WEIGHTS.term,
    "widened_share": _WEIGHTS.widened_share,
    "peers": _WEIGHTS.peers,
    "sharpness": _WEIGHTS.sharpness,
    "support": _WEIGHTS.support,
}
