"""A database with the current schema."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg import sql

from infra.local.postgres import SUPERUSER, Postgres
from octopus.cloud.migrations import migrate

MIGRATIONS = Path(__file__).parent.parent.parent / "infra" / "migrations"


def create_database(server: Postgres, name: str, *, template: str = "template1") -> None:
    """A database of the owner role, with the extension, as it exists before the first migration."""
    with psycopg.connect(server.dsn("postgres", SUPERUSER), autocommit=True) as connection:
        create = sql.SQL("create database {} template {} owner octopus_owner")
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
    with psycopg.connect(server.dsn(name, SUPERUSER), autocommit=True) as connection:
        connection.execute("create extension if not exists vector")


async def prepare(server: Postgres, name: str = "octopus_bench") -> str:
    """Make a migrated database; the address of the application role in it."""
    create_database(server, name)
    await migrate(server.dsn(name), MIGRATIONS)
    return server.dsn(name, "octopus_app")
