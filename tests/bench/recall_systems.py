"""What is compared: each system is given the same items with the same vectors, and ranks them for a question."""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID, uuid4

import numpy as np
import psycopg
from pgvector import Vector as PgVector

from octopus.agents.store import PostgresAgentStore
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.queries import load_queries
from octopus.cloud.tokens import count_tokens
from octopus.embedding import Embedder
from octopus.episodic.context import contexts, parts
from octopus.episodic.ports import NewEpisode, Trace
from octopus.episodic.store import PostgresEpisodeStore
from octopus.recall import Scope
from octopus.relevance import Vector
from octopus.semantic.search_store import PostgresKnowledgeSearch
from octopus.semantic.types import SearchMode
from tests.bench.recall_data import Collection

_SQL = load_queries("tests.bench", "recall.sql")
TENANT = "bench"


@dataclass(frozen=True)
class Text:
    """One item as it is indexed. Items of a session stand together."""

    text: str
    session: int
    at: datetime | None
    vector: Vector


async def texts_of(collection: Collection, say: bool, embedder: Embedder) -> list[Text]:
    """The items of a collection, with their speakers if `say`, and their vectors."""
    texts = [item.said if say else item.text for item in collection.items]
    vectors = await embedder.embed(texts)
    rows = zip(collection.items, texts, vectors, strict=True)
    return [Text(text, item.session, item.date, vector) for item, text, vector in rows]


class System(Protocol):
    """One way to find items."""

    name: str

    async def add(self, items: Sequence[Text]) -> None:
        """Index one collection; the ones before it stay, as those of other users."""
        ...

    async def rank(self, question: str, vector: Vector, limit: int) -> list[int]:
        """Positions of the best items of the collection that was added last, best first."""
        ...


class ExactVector:
    """Cosine with every item, in memory."""

    name = "cosine, exact"

    async def add(self, items: Sequence[Text]) -> None:
        self._vectors = np.array([item.vector for item in items])

    async def rank(self, question: str, vector: Vector, limit: int) -> list[int]:
        order: list[int] = np.argsort(-(self._vectors @ np.array(vector)), kind="stable")[:limit].tolist()
        return order


class Bm25:
    """BM25 in memory on PostgreSQL's English lexemes, k1 = 1.2 and b = 0.75."""

    name = "BM25, in memory"

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def _terms(self, text: str) -> Counter[str]:
        lexemes = self._connection.execute(
            "select lexeme, cardinality(positions) from unnest(to_tsvector('english', %s))", (text,)
        )
        return Counter(dict(lexemes.fetchall()))

    async def add(self, items: Sequence[Text]) -> None:
        self._items = [self._terms(item.text) for item in items]
        self._usual = sum(item.total() for item in self._items) / len(items)
        self._held = Counter(term for item in self._items for term in item)

    async def rank(self, question: str, vector: Vector, limit: int) -> list[int]:
        n = len(self._items)
        idf = {t: math.log(1 + (n - self._held[t] + 0.5) / (self._held[t] + 0.5)) for t in self._terms(question)}
        scores = [
            sum(
                idf[t] * item[t] * 2.2 / (item[t] + 1.2 * (0.25 + 0.75 * item.total() / self._usual))
                for t in idf
                if t in item
            )
            for item in self._items
        ]
        return sorted(range(n), key=lambda i: -scores[i])[:limit]


class FullText:
    """PostgreSQL's full text search: the question's lexemes OR-ed, by ts_rank."""

    name = "PostgreSQL full text"

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    async def add(self, items: Sequence[Text]) -> None:
        self._connection.execute("drop table if exists items")
        self._connection.execute("create table items (n integer, lexemes tsvector)")
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "insert into items values (%s, to_tsvector('english', %s))", [(n, i.text) for n, i in enumerate(items)]
            )
        self._connection.execute("create index on items using gin (lexemes)")

    async def rank(self, question: str, vector: Vector, limit: int) -> list[int]:
        rows = self._connection.execute(
            "with q as (select string_agg(quote_literal(lexeme), ' | ')::tsquery as q "
            "from unnest(to_tsvector('english', %s))) "
            "select n from items, q where lexemes @@ q order by ts_rank(lexemes, q) desc, n limit %s",
            (question, limit),
        )
        return [n for (n,) in rows]


class OctopusEpisodes:
    """Octopus: sessions closed into episodes through the production store, traces ranked by the production query."""

    name = "Octopus, episodes"

    def __init__(self, database: Database, space: EmbeddingSpace, embedder: Embedder) -> None:
        self._database = database
        self.store = PostgresEpisodeStore(database, space)
        self._embedder = embedder

    async def add(self, items: Sequence[Text]) -> None:
        agent = await PostgresAgentStore(self._database).create_agent(TENANT, uuid4().hex, "", "Remember.", None, {})
        self.scope = Scope(TENANT, "ada", agent.agent_id)
        self._positions: dict[tuple[UUID, int], int] = {}
        for _, session in groupby(enumerate(items), key=lambda numbered: numbered[1].session):
            await self._close(list(session))

    async def _close(self, session: list[tuple[int, Text]]) -> None:
        conversation = uuid4()
        params = {
            "tenant_id": TENANT,
            "conversation_id": conversation,
            "agent_id": self.scope.agent_id,
            "user_id": self.scope.user_id,
            "last_seq": len(session),
            "at": session[0][1].at or datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=session[0][1].session),
        }
        await self._database.run(TENANT, _SQL["begin_session"], params)
        claim = await self.store.claim_session(TENANT, conversation, len(session), "bench", 60)
        assert claim is not None
        surrounded = contexts([item.vector for _, item in session], [True] * len(session))
        traces = [
            Trace("passage", item.text, seq, seq, 0, item.vector, context, await self._embedder.embed(parts(item.text)))
            for seq, ((_, item), context) in enumerate(zip(session, surrounded, strict=True), start=1)
        ]
        assert await self.store.write_episode(TENANT, claim, "bench", NewEpisode("", "verbatim", len(session), traces))
        self._positions |= {(conversation, ordinal): n for ordinal, (n, _) in enumerate(session)}

    async def rank(self, question: str, vector: Vector, limit: int) -> list[int]:
        hits = await self.store.best_traces(self.scope, question, vector, limit)
        return [self._positions[hit.episode.conversation_id, hit.ordinal] for hit in hits]


class OctopusKnowledge:
    """Octopus: a document of one chunk per item, ranked by the production queries."""

    def __init__(self, database: Database, space: EmbeddingSpace, mode: SearchMode, *, exact_to: int = 10_000) -> None:
        self.name = f"Octopus, knowledge, {mode}" + ("" if exact_to else ", by index")
        self._database = database
        self._space = space
        self._mode = mode
        self.search = PostgresKnowledgeSearch(database, space, exact_to=exact_to)

    async def add(self, items: Sequence[Text]) -> None:
        agent = await PostgresAgentStore(self._database).create_agent(TENANT, uuid4().hex, "", "Know.", None, {})
        self.agent = agent.agent_id
        documents = [uuid4() for _ in items]
        self._positions = {document: n for n, document in enumerate(documents)}
        space_id = await self._space.id()
        rows = [
            {
                "tenant_id": TENANT,
                "document_id": document,
                "agent_id": self.agent,
                "file_name": str(document),
                "content": item.text,
                "token_count": count_tokens(item.text),
                "space_id": space_id,
                "embedding": PgVector(item.vector),
            }
            for document, item in zip(documents, items, strict=True)
        ]
        async with self._database.transaction(TENANT) as tx:
            for statement in ("begin_document", "add_chunk", "publish_document"):
                await tx.many(_SQL[statement], rows)

    async def rank(self, question: str, vector: Vector, limit: int) -> list[int]:
        hits = await self.search.search(TENANT, [self.agent], question, vector, self._mode, limit)
        return [self.position(hit.document_id) for hit in hits]

    def position(self, document_id: UUID) -> int:
        return self._positions[document_id]


class Peer:
    """A store of another project, in a child process (see `recall_peers`)."""

    def __init__(self, name: str, python: Path, dsn: str) -> None:
        self.name = name
        self.took: float | None = None  # seconds of the last ranking, within the child
        self._user = ""
        script = Path(__file__).with_name("recall_peers.py")
        self._child = subprocess.Popen(
            [python, script, name, dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    async def add(self, items: Sequence[Text]) -> None:
        self._user = uuid4().hex
        self._ask({"add": [[item.text, item.vector] for item in items], "user": self._user})

    def load(self, user: str, items: Sequence[tuple[str, Vector]]) -> None:
        """Index more items of a user, in the way that the store has for many."""
        self._ask({"load": items, "user": user})

    def ask_as(self, user: str) -> None:
        self._user = user

    async def rank(self, question: str, vector: Vector, limit: int) -> list[int]:
        answer = self._ask({"rank": question, "vector": vector, "user": self._user, "limit": limit})
        self.took = answer["seconds"]
        ranked: list[int] = answer["ranked"]
        return ranked

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(
                f"{self.name} ended with status {self._child.wait()}; run tests/bench/recall_peers.py by hand"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self._child.terminate()
        self._child.wait()
