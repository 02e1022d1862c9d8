"""Row-level security: the application role sees, changes and creates its own tenant's rows, through no table others'.

Covers every table that has a tenant, also those of later migrations, by filling each with a row of a foreign tenant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from infra.local.postgres import SUPERUSER, Postgres
from octopus.cloud.database import Database
from octopus.errors import OctopusError
from tests.conftest import DatabaseUrls

SAMPLES = {
    "text": "x",
    "uuid": uuid4(),
    "integer": 1,
    "smallint": 1,
    "bigint": 1,
    "double precision": 1.0,
    "real": 1.0,
    "boolean": True,
    "json": "{}",
    "jsonb": "{}",
    "bytea": b"x",
    "timestamp with time zone": "2026-01-01",
    "ARRAY": "{}",
    "tsvector": "x",
    "vector": "[1,0]",
    "halfvec": "[1,0]",
    "sparsevec": "{1:1}/2",
}
FOREIGN = "somebody-else"


@pytest.fixture
def filled(postgres: Postgres, database_urls: DatabaseUrls) -> Iterator[list[str]]:
    """Every table with a tenant, each with one row of a foreign tenant."""
    name = urlsplit(database_urls.owner).path.strip("/")
    with psycopg.connect(postgres.dsn(name, SUPERUSER), autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")  # rows need not refer to anything
        tables = [row[0] for row in connection.execute(TENANT_TABLES)]
        for table in tables:
            _fill(connection, table)
        yield tables


TENANT_TABLES = """
select table_name from information_schema.columns
where table_schema = 'public' and column_name = 'tenant_id' and is_updatable = 'YES' order by 1
"""
REQUIRED_COLUMNS = """
select column_name, case when data_type = 'USER-DEFINED' then udt_name else data_type end
from information_schema.columns
where table_schema = 'public' and table_name = %s and is_nullable = 'NO' and column_default is null
  and is_identity = 'NO' and is_generated = 'NEVER'
"""
CHECKS = "select pg_get_constraintdef(oid) from pg_constraint where contype = 'c' and conrelid = %s::regclass"
SECURED = "select relrowsecurity and relforcerowsecurity from pg_class where oid = %s::regclass"
OWNER = "select tableowner from pg_tables where schemaname = 'public' and tablename = %s"


def _fill(connection: psycopg.Connection[Any], table: str) -> None:
    checks = "\n".join(row[0] for row in connection.execute(CHECKS, (table,)))
    allowed = dict(re.findall(r"(\w+) = ANY \(ARRAY\['?([\w-]+)", checks)[::-1])
    columns = dict(connection.execute(REQUIRED_COLUMNS, (table,)).fetchall())
    values = {name: allowed.get(name, SAMPLES[kind]) for name, kind in columns.items()} | {"tenant_id": FOREIGN}
    insert = sql.SQL("insert into {} ({}) values ({})").format(
        sql.Identifier(table),
        sql.SQL(",").join(map(sql.Identifier, values)),
        sql.SQL(",").join([sql.Placeholder()] * len(values)),
    )
    connection.execute(insert, list(values.values()))


def test_every_tenant_table_forces_row_level_security(filled: list[str], database_urls: DatabaseUrls) -> None:
    assert len(filled) >= 13
    with psycopg.connect(database_urls.owner) as connection:
        for table in filled:
            assert connection.execute(SECURED, (table,)).fetchone() == (True,), table
            assert connection.execute(OWNER, (table,)).fetchone() == ("octopus_owner",), table
            assert connection.execute(f"select count(*) from {table}").fetchone() == (0,), f"{table}: seen by its owner"


@pytest.mark.parametrize("tenant", ["acme", "", "SOMEBODY-ELSE", "somebody-els_", "%"])
def test_the_application_role_sees_no_foreign_row(filled: list[str], database_urls: DatabaseUrls, tenant: str) -> None:
    with psycopg.connect(database_urls.app) as connection:
        connection.execute("select set_config('octopus.tenant_id', %s, true)", (tenant,))
        for table in filled:
            assert connection.execute(f"select count(*) from {table}").fetchone() == (0,), table


def test_without_a_tenant_nothing_is_visible(filled: list[str], database_urls: DatabaseUrls) -> None:
    with psycopg.connect(database_urls.app) as connection:
        for table in filled:
            assert connection.execute(f"select count(*) from {table}").fetchone() == (0,), table


def test_its_own_tenant_is_visible(filled: list[str], database_urls: DatabaseUrls) -> None:
    """The proof that the tests above look at rows that are there."""
    with psycopg.connect(database_urls.app) as connection:
        connection.execute("select set_config('octopus.tenant_id', %s, true)", (FOREIGN,))
        for table in filled:
            assert connection.execute(f"select count(*) from {table}").fetchone() == (1,), table


def test_the_application_role_changes_no_foreign_row(filled: list[str], database_urls: DatabaseUrls) -> None:
    with psycopg.connect(database_urls.app, autocommit=True) as connection:
        connection.execute("select set_config('octopus.tenant_id', 'acme', false)")
        for table in filled:
            for statement in (f"update {table} set tenant_id = 'acme'", f"delete from {table}"):
                with suppress(psycopg.errors.InsufficientPrivilege):  # some are not granted at all
                    assert connection.execute(statement).rowcount == 0, statement


def test_the_application_role_plants_no_row_with_another_tenant(
    filled: list[str], database_urls: DatabaseUrls, postgres: Postgres
) -> None:
    """Even a copy of an own row with nothing changed but the tenant is refused."""
    with psycopg.connect(database_urls.app, autocommit=True) as connection:
        connection.execute("select set_config('octopus.tenant_id', %s, false)", (FOREIGN,))
        refused = 0
        for table in filled:
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.GeneratedAlways)):
                connection.execute(f"update {table} set tenant_id = 'acme'")
            refused += 1
        assert refused == len(filled)


def test_the_application_role_cannot_switch_the_policies_off(database_urls: DatabaseUrls) -> None:
    with psycopg.connect(database_urls.app, autocommit=True) as connection:
        for statement in (
            "alter table messages disable row level security",
            "drop policy tenant on messages",
            "set role octopus_owner",
            "create policy all_of_it on messages using (true)",
            "truncate messages",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
        connection.execute("set row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select * from messages")


async def test_a_transaction_forgets_its_tenant(database: Database, filled: list[str]) -> None:
    """Connections are shared by tenants: what one transaction set must not reach the next."""
    single = database
    async with single.transaction(FOREIGN) as tx:
        assert len(await tx.all("select 1 from agents")) == 1
    async with single.transaction("") as tx:
        assert await tx.all("select 1 from agents") == []


async def test_the_sweep_role_sees_no_content(filled: list[str], database_urls: DatabaseUrls) -> None:
    sweep = Database.at(database_urls.sweep, pool_size=1)
    assert await sweep.all("", "select tenant_id, conversation_id, last_message_at from conversations")
    for table in ("messages", "episode_facts", "chunks", "turns"):
        with pytest.raises((OctopusError, psycopg.errors.InsufficientPrivilege)):
            await sweep.all("", f"select * from {table}")  # type: ignore[arg-type]
    with pytest.raises((OctopusError, psycopg.errors.InsufficientPrivilege)):
        await sweep.all("", "select summary from conversations")
    await sweep.close()
