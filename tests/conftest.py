"""Fixtures that all suites share: a real PostgreSQL, a fresh database per test, and a deterministic embedder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import boto3
import psycopg
import pytest
from psycopg import sql

from infra.local.postgres import SUPERUSER, Postgres, with_server
from octopus.agents.store import PostgresAgentStore
from octopus.agents.types import Agent
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.migrations import migrate
from octopus.recall import Scope
from octopus.settings import settings
from tests.support.embedder import WordEmbedder

MIGRATIONS = Path(__file__).parent.parent / "infra" / "migrations"
TEMPLATE = "octopus_template"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the caller's settings or AWS account."""
    for name in list(os.environ):
        if name.startswith(("OCTOPUS_", "AWS_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("POWERTOOLS_TRACE_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it would keep the credentials of an earlier test
    settings.cache_clear()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for the whole run. Not under pytest's own directory, which a second run of pytest closes to others."""
    with TemporaryDirectory(prefix="octopus-") as directory, with_server(Path(directory) / "data") as server:
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres: Postgres) -> str:
    """A database with the current schema, to be cloned."""
    with psycopg.connect(postgres.dsn("postgres", SUPERUSER), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {} owner octopus_owner").format(sql.Identifier(TEMPLATE)))
    with psycopg.connect(postgres.dsn(TEMPLATE, SUPERUSER), autocommit=True) as connection:
        connection.execute("create extension vector")
    asyncio.run(migrate(postgres.dsn(TEMPLATE), MIGRATIONS))
    return TEMPLATE


@dataclass(frozen=True)
class DatabaseUrls:
    """Addresses of one test's database under each role."""

    owner: str
    app: str
    sweep: str


@pytest.fixture
def database_urls(postgres: Postgres, migrated_template: str) -> Iterator[DatabaseUrls]:
    """A database of this test's own."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres.dsn("postgres", SUPERUSER), autocommit=True) as connection:
        create = sql.SQL("create database {} template {} owner octopus_owner")
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(migrated_template)))
        yield DatabaseUrls(*(postgres.dsn(name, f"octopus_{role}") for role in ("owner", "app", "sweep")))
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
async def database(database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    """The application role's pool."""
    pool = Database.at(database_urls.app, pool_size=6)
    yield pool
    await pool.close()


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def space(database: Database, embedder: WordEmbedder) -> EmbeddingSpace:
    return EmbeddingSpace(database, embedder)


@pytest.fixture
async def agent(database: Database) -> Agent:
    """An agent of tenant ``acme``."""
    return await PostgresAgentStore(database).create_agent("acme", "aria", "", "You are Aria.", None, {})


@pytest.fixture
def scope(agent: Agent) -> Scope:
    """User ``ada`` of tenant ``acme`` with the agent."""
    return Scope("acme", "ada", agent.agent_id)
