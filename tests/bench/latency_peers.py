"""Other stores on the same rows: every chunk of a database, a user for each agent; the large agent's user asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql

from infra.local.postgres import SUPERUSER, Postgres
from octopus.cloud.queries import load_queries
from octopus.relevance import Vector
from tests.bench.recall_systems import Peer
from tests.support.schema import create_database

_SQL = load_queries("tests.bench", "latency.sql")
PEERS = ("mem0", "LangGraph")
_BATCH = 500


async def measure_peer(
    name: str, server: Postgres, database: str, python: Path, user: str, turns: Sequence[tuple[str, Vector]], limit: int
) -> tuple[list[float], float]:
    """Milliseconds of each search, as the store sees it, and the share of the exact `limit` best that it has found."""
    own = f"{database}_{name.lower()}"
    drop_database(server, own)
    create_database(server, own)
    peer = Peer(name, python, server.dsn(own, SUPERUSER))
    vectors: list[Vector] = []
    try:
        for owner, texts, batch in _chunks(server, database):
            peer.load(owner, list(zip(texts, batch, strict=True)))
            vectors += batch if owner == user else []
        peer.ask_as(user)
        matrix = np.array(vectors, dtype=np.float32)
        took, shares = [], []
        for text, vector in turns:
            found = await peer.rank(text, vector, limit)
            took.append((peer.took or 0.0) * 1e3)
            exact = np.argsort(-(matrix @ np.array(vector, dtype=np.float32)))[:limit].tolist()
            shares.append(len(set(exact) & set(found)) / limit)
    finally:
        peer.close()
    return took, float(np.mean(shares))


def drop_database(server: Postgres, name: str) -> None:
    with psycopg.connect(server.dsn("postgres", SUPERUSER), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))


def _chunks(server: Postgres, database: str) -> Iterator[tuple[str, list[str], list[Vector]]]:
    """Tenant, texts and vectors, a few hundred at a time, in one order."""
    with psycopg.connect(server.dsn(database, SUPERUSER)) as connection:
        register_vector(connection)
        with connection.cursor("chunks") as cursor:
            cursor.execute(_SQL["every_chunk"])
            while rows := cursor.fetchmany(_BATCH):
                for tenant, group in groupby(rows, key=lambda row: str(row[0])):
                    of_tenant = list(group)
                    yield tenant, [row[1] for row in of_tenant], [row[2].to_list() for row in of_tenant]
