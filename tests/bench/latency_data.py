"""Databases of many tenants, of any size, made up: text of a skewed vocabulary by topic, and vectors that cluster.

A vector has 48 independent directions in 384 dimensions, about as many as sentence embeddings; chunks of one topic
have a cosine of .6 to .7, others of 0. Each topic has 200 words of its own beside a vocabulary of 50,000 by Zipf's law.
Rows are copied, and indexes built afterwards, for a million chunks would take hours one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector import Vector as PgVector
from pgvector.psycopg import register_vector

from octopus.cloud.queries import load_queries
from octopus.recall import Scope
from octopus.relevance import Vector

_SQL = load_queries("tests.bench", "latency.sql")
DIMENSIONS, LATENT, TOPICS = 384, 48, 1_000
PER_DOCUMENT, PER_AGENT, PER_SESSION = 50, 5_000, 20
_BATCH, _AT_ONCE = 1_000, 2  # chunks; connections that write them
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Owner:
    """One agent with a user, and how much they have."""

    scope: Scope
    chunks: int
    facts: int


class World:
    """Text and vectors by topic; the same for the same seed."""

    def __init__(self, seed: int = 1, *, of: World | None = None) -> None:
        """The topics and words are those `of` another world, if it is given."""
        self.rng = np.random.default_rng(seed)
        if of is not None:
            self._topics, self._space, self._words, self._chance = of._topics, of._space, of._words, of._chance
            return
        self._topics = self.rng.standard_normal((TOPICS, LATENT)).astype(np.float32)
        self._space = self.rng.standard_normal((LATENT, DIMENSIONS)).astype(np.float32)
        self._words = np.array(["".join(self.rng.choice(SYLLABLES, 4)) for _ in range(50_000)])
        chance = 1 / (np.arange(50_000) + 10)
        self._chance = chance / chance.sum()

    def vectors(self, topics: NDArray[np.int64]) -> Floats:
        """One unit vector per topic given."""
        latent = self._topics[topics] + 0.7 * self.rng.standard_normal((len(topics), LATENT)).astype(np.float32)
        vectors = latent @ self._space
        unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def texts(self, topics: NDArray[np.int64], of_topic: int, of_all: int) -> list[str]:
        own = self._words[10_000 + topics[:, None] * 37 % 39_000 + self.rng.integers(0, 200, (len(topics), of_topic))]
        common = self._words[self.rng.choice(50_000, (len(topics), of_all), p=self._chance)]
        return [" ".join(row) for row in np.concatenate([own, common], axis=1)]

    def question(self) -> tuple[str, Vector]:
        """A message about some topic, with its vector."""
        topic = self.rng.integers(0, TOPICS, 1)
        return self.texts(topic, 4, 3)[0], self.vectors(topic)[0].tolist()


def owners(size: int) -> list[Owner]:
    """Half of all chunks are one agent's, 1,000 another's, and the rest belongs to agents of 5,000, each a tenant's."""
    large, small = size // 2, min(1_000, size // 10)
    rest = size - large - small
    sizes = [min(PER_AGENT, rest - start) for start in range(0, rest, PER_AGENT)]
    return [
        Owner(Scope("large", "ada", uuid4()), large, 10_000),
        Owner(Scope("small", "ada", uuid4()), small, 1_000),
        *(Owner(Scope(f"t{n}", "ada", uuid4()), chunks, 0) for n, chunks in enumerate(sizes)),
    ]


def fill(dsn: str, size: int, space_id: int) -> list[Owner]:
    """Fill a migrated, empty database; connects as superuser, since COPY is not for roles under row-level security."""
    world, who = World(), owners(size)
    with psycopg.connect(dsn, autocommit=True) as connection:
        register_vector(connection)
        with connection.cursor() as cursor:
            cursor.executemany(_SQL["add_agent"], [(o.scope.tenant_id, o.scope.agent_id) for o in who])
        indexes = [row[0] for row in connection.execute(_SQL["vector_indexes"]).fetchall()]
        connection.execute(_SQL["drop_vector_indexes"])
        connection.execute(_SQL["drop_postings_key"])
        for owner in who:
            _documents(connection, owner)
        with ThreadPoolExecutor(_AT_ONCE) as threads:  # most of the work is the server's
            batches = [(o, start) for o in who for start in range(0, o.chunks, _BATCH)]
            shares = [batches[n::_AT_ONCE] for n in range(_AT_ONCE)]
            for done in [threads.submit(_batches, dsn, n, share, space_id) for n, share in enumerate(shares)]:
                done.result()
        print("  chunks copied", flush=True)
        connection.execute(f"set maintenance_work_mem = '{256 + size // 400}MB'")  # the whole graph is built in memory
        for statement in (_SQL["add_postings_key"], _SQL["count_terms"], _SQL["count_chunks"], *indexes):
            connection.execute(statement)
        print("  indexes built", flush=True)
        for owner in who:
            _facts(connection, world, owner, space_id)
        connection.execute("vacuum analyze")
    return who


def _batches(dsn: str, seed: int, batches: Sequence[tuple[Owner, int]], space_id: int) -> None:
    world = World(seed + 2, of=World())
    with psycopg.connect(dsn, autocommit=True) as connection:
        register_vector(connection)
        for owner, start in batches:
            _chunks(connection, world, owner, range(start, min(start + _BATCH, owner.chunks)), space_id)


def _documents(connection: psycopg.Connection, owner: Owner) -> None:
    with connection.cursor() as cursor, cursor.copy(_SQL["copy_documents"]) as copy:
        copy.set_types(["text", "uuid", "uuid", "text", "text", "text", "text", "text", "int4", "int4"])
        for number in range(-(-owner.chunks // PER_DOCUMENT)):
            key = _document(owner, number)
            place = (owner.scope.tenant_id, key, owner.scope.agent_id, f"{number}.txt", str(key))
            copy.write_row((*place, "text/plain", "bench", "indexed", 1, 1))


def _document(owner: Owner, number: int) -> UUID:
    return UUID(int=owner.scope.agent_id.int ^ (number + 1))


def _chunks(connection: psycopg.Connection, world: World, owner: Owner, numbers: range, space_id: int) -> None:
    types = ["text", "uuid", "int4", "int4", "uuid", "text", "int4", "bytea", "int4", "vector"]
    tenant, agent = owner.scope.tenant_id, owner.scope.agent_id
    # A document is about one topic, and a batch is whole documents.
    topics = (np.array(numbers) // PER_DOCUMENT * 7 + len(tenant)) % TOPICS
    documents = [_document(owner, n) for n in range(numbers.start // PER_DOCUMENT, -(-numbers.stop // PER_DOCUMENT))]
    with connection.cursor() as cursor, cursor.copy(_SQL["copy_chunks"]) as copy:
        copy.set_types(types)
        for n, text, vector in zip(numbers, world.texts(topics, 20, 40), world.vectors(topics), strict=True):
            key = documents[(n - numbers.start) // PER_DOCUMENT]
            copy.write_row((tenant, key, 1, n % PER_DOCUMENT, agent, text, 60, b"", space_id, PgVector(vector)))
    connection.execute(_SQL["add_postings"], (tenant, documents))


def _facts(connection: psycopg.Connection, world: World, owner: Owner, space_id: int) -> None:
    sessions = list(_sessions(owner))
    for start in range(0, len(sessions), 50):  # vacuumed in between, as a table that grows slowly is
        _episodes(connection, world, owner, space_id, dict(enumerate(sessions[start : start + 50], start)))
        connection.execute("vacuum episode_facts, episodes")


def _episodes(
    connection: psycopg.Connection,
    world: World,
    owner: Owner,
    space_id: int,
    sessions: dict[int, tuple[UUID, datetime]],
) -> None:
    when = ["timestamptz", "timestamptz"]
    with connection.cursor() as cursor, cursor.copy(_SQL["copy_episodes"]) as copy:
        copy.set_types(["text", *["uuid"] * 3, *["text"] * 3, "int4", "int4", *when, "text"])
        for key, at in sessions.values():
            who = (owner.scope.tenant_id, key, uuid4(), owner.scope.agent_id, owner.scope.user_id)
            copy.write_row((*who, "A summary.", "model", PER_SESSION, PER_SESSION, at, at, "UserClosed"))
    types = ["text", "uuid", "int4", "uuid", "text", "text", "text", "int4", "int4", "vector", "halfvec", "vector[]"]
    with connection.cursor() as cursor, cursor.copy(_SQL["copy_facts"]) as copy:
        copy.set_types(types)
        for number, (key, _) in sessions.items():
            topics = np.full(PER_SESSION, number % TOPICS)
            vectors, parts = world.vectors(topics), world.vectors(np.repeat(topics, 3))
            for ordinal, text in enumerate(world.texts(topics, 8, 12)):
                window = vectors[max(0, ordinal - 2) : ordinal + 3].mean(axis=0)
                context = HalfVector(0.25 * vectors[ordinal] + 0.75 * window)
                within = [PgVector(part) for part in parts[3 * ordinal : 3 * ordinal + 3]]
                place = (owner.scope.tenant_id, key, ordinal, owner.scope.agent_id, owner.scope.user_id)
                copy.write_row((*place, "passage", text, 20, space_id, PgVector(vectors[ordinal]), context, within))
    connection.execute(_SQL["index_episodes"], ([key for key, _ in sessions.values()],))


def _sessions(owner: Owner) -> Iterator[tuple[UUID, datetime]]:
    for number in range(owner.facts // PER_SESSION):
        yield uuid4(), datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)
