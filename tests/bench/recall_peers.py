"""Other stores behind one protocol. Runs in an environment of its own (`requirements/bench.txt`), as a child process.

    python tests/bench/recall_peers.py NAME DSN

Reads one JSON object per line and answers with one: `{"add": [[text, vector], …], "user": u}` indexes a user's items,
`{"load": …}` adds to them in the store's way for many, and
`{"rank": text, "vector": v, "user": u, "limit": n}` gives `{"ranked": [position, …], "seconds": s}`. Each store gets
the vectors ready made, in the place of its embedder, and is otherwise set up as its documentation says for PostgreSQL:

- mem0: `Memory` on its pgvector store with HNSW; items are added with `infer=False`, so that no model rewrites them.
  Its constructor wants a language model, which is given a dummy key and never called; spaCy's lemmas (`mem0ai[nlp]`)
  need a model from another host and are off.
- LangGraph: `PostgresStore` with its vector index, one namespace per user.
- LlamaIndex: `PGVectorStore` with `hybrid_search=True`; its hybrid mode returns the vector's and the text's results one
  after the other, so the two are fused by reciprocal rank, as its `QueryFusionRetriever` does.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from hashlib import md5
from typing import Any, Protocol
from uuid import uuid4

Vector = list[float]
_RRF = 60  # llama_index.core.retrievers.QueryFusionRetriever


class Vectors:
    """An embedder that has seen everything already. A store may trim what it is given."""

    def __init__(self) -> None:
        self._known: dict[str, Vector] = {}

    def learn(self, text: str, vector: Vector) -> None:
        self._known[text.strip()] = vector

    def of(self, text: str) -> Vector:
        return self._known[text.strip()]

    def forget(self) -> None:
        self._known.clear()


class Store(Protocol):
    def add(self, user: str, items: list[tuple[str, Vector]]) -> None: ...

    def load(self, user: str, items: list[tuple[str, Vector]]) -> None: ...

    def rank(self, user: str, text: str, vector: Vector, limit: int) -> list[int]: ...


class Mem0:
    def __init__(self, dsn: str, vectors: Vectors, dimensions: int) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none"}
        from mem0 import Memory

        self._memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "pgvector",
                    "config": {"connection_string": dsn, "embedding_model_dims": dimensions, "hnsw": True},
                },
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "embedder": {"provider": "openai", "config": {"api_key": "none"}},
            }
        )
        self._memory.embedding_model = _Mem0Embedder(vectors)
        self._positions: dict[str, int] = {}
        self._loaded: Counter[str] = Counter()

    def add(self, user: str, items: list[tuple[str, Vector]]) -> None:
        for position, (text, _) in enumerate(items):
            added = self._memory.add(text, user_id=user, infer=False)["results"]
            self._positions |= {memory["id"]: position for memory in added}

    def load(self, user: str, items: list[tuple[str, Vector]]) -> None:
        """Rows as `add` leaves them, past its search for duplicates and its history."""
        from mem0.utils.lemmatization import lemmatize_for_bm25

        ids = [str(uuid4()) for _ in items]
        now = datetime.now(UTC).isoformat()
        payloads = [
            {
                "data": text,
                "hash": md5(text.encode()).hexdigest(),
                "user_id": user,
                "created_at": now,
                "updated_at": now,
                "text_lemmatized": lemmatize_for_bm25(text),
            }
            for text, _ in items
        ]
        self._memory.vector_store.insert(vectors=[vector for _, vector in items], payloads=payloads, ids=ids)
        self._positions |= dict(zip(ids, range(self._loaded[user], self._loaded[user] + len(ids)), strict=True))
        self._loaded[user] += len(ids)

    def rank(self, user: str, text: str, vector: Vector, limit: int) -> list[int]:
        found = self._memory.search(text, top_k=limit, filters={"user_id": user}, threshold=0.0)["results"]
        return [self._positions[memory["id"]] for memory in found]


class _Mem0Embedder:
    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> Vector:
        return self._vectors.of(text)

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[Vector]:
        return [self._vectors.of(text) for text in texts]


class LangGraph:
    def __init__(self, dsn: str, vectors: Vectors, dimensions: int) -> None:
        from langgraph.store.postgres import PostgresStore

        def embed(texts: list[str]) -> list[Vector]:
            return [vectors.of(text) for text in texts]

        index = {"dims": dimensions, "embed": embed, "fields": ["text"]}
        self._opened = PostgresStore.from_conn_string(dsn, index=index)
        self._store = self._opened.__enter__()
        self._store.setup()
        self._loaded: Counter[str] = Counter()

    def add(self, user: str, items: list[tuple[str, Vector]]) -> None:
        from langgraph.store.base import PutOp

        operations = [
            PutOp(("memories", user), str(position), {"text": text}) for position, (text, _) in enumerate(items)
        ]
        for start in range(0, len(operations), 500):
            self._store.batch(operations[start : start + 500])

    def load(self, user: str, items: list[tuple[str, Vector]]) -> None:
        from langgraph.store.base import PutOp

        first = self._loaded[user]
        self._store.batch(
            [PutOp(("memories", user), str(first + n), {"text": text}) for n, (text, _) in enumerate(items)]
        )
        self._loaded[user] += len(items)

    def rank(self, user: str, text: str, vector: Vector, limit: int) -> list[int]:
        return [int(item.key) for item in self._store.search(("memories", user), query=text, limit=limit)]


class LlamaIndex:
    def __init__(self, dsn: str, vectors: Vectors, dimensions: int) -> None:
        from llama_index.vector_stores.postgres import PGVectorStore

        address = dsn.split("://", 1)[1]
        self._store = PGVectorStore(
            connection_string=f"postgresql+psycopg2://{address}",
            async_connection_string=f"postgresql+asyncpg://{address}",
            table_name="items",
            embed_dim=dimensions,
            hybrid_search=True,
            text_search_config="english",
            use_jsonb=True,
            hnsw_kwargs={"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40},
        )

    def add(self, user: str, items: list[tuple[str, Vector]]) -> None:
        from llama_index.core.schema import TextNode

        nodes = [
            TextNode(id_=f"{user}/{position}", text=text, embedding=vector, metadata={"user": user})
            for position, (text, vector) in enumerate(items)
        ]
        for start in range(0, len(nodes), 500):
            self._store.add(nodes[start : start + 500])

    def load(self, user: str, items: list[tuple[str, Vector]]) -> None:
        raise NotImplementedError("latency is not compared with this store")

    def rank(self, user: str, text: str, vector: Vector, limit: int) -> list[int]:
        from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, VectorStoreQuery
        from llama_index.core.vector_stores.types import VectorStoreQueryMode

        filters = MetadataFilters(filters=[MetadataFilter(key="user", value=user)])
        scores: dict[str, float] = {}
        for mode in (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.TEXT_SEARCH):
            query = VectorStoreQuery(
                query_embedding=vector,
                query_str=text,
                similarity_top_k=limit,
                sparse_top_k=limit,
                mode=mode,
                filters=filters,
            )
            for place, node in enumerate(self._store.query(query).ids or []):
                scores[node] = scores.get(node, 0.0) + 1 / (_RRF + place)
        return [int(node.rsplit("/", 1)[1]) for node in sorted(scores, key=lambda n: -scores[n])][:limit]


STORES = {"mem0": Mem0, "LangGraph": LangGraph, "LlamaIndex": LlamaIndex}


def main() -> None:
    name, dsn = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr  # what a store prints is no answer
    vectors = Vectors()
    store: Store | None = None
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        answer: dict[str, Any] = {}
        if "add" in request or "load" in request:
            items = [(text, vector) for text, vector in request.get("add") or request["load"]]
            for item in items:
                vectors.learn(*item)
            store = store or STORES[name](dsn, vectors, len(items[0][1]))
            if "add" in request:
                store.add(request["user"], items)
            else:
                store.load(request["user"], items)
                vectors.forget()
        elif store is not None:
            vectors.learn(request["rank"], request["vector"])
            began = time.perf_counter()
            ranked = store.rank(request["user"], request["rank"], request["vector"], request["limit"])
            answer = {"ranked": ranked, "seconds": time.perf_counter() - began}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
