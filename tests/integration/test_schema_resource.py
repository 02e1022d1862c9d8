"""The schema as a CloudFormation resource: what a deployment is told, and what it may not do to a database."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from functions.migrate.handler import handler
from infra.local.lambda_runtime import LambdaContext
from infra.local.postgres import SUPERUSER, Postgres
from octopus.cloud.migrations import ROLLBACK_S, migrate
from octopus.cloud.wiring import services
from octopus.settings import settings

FIRST, SECOND = "0001_first.sql", "0002_second.sql"


@pytest.fixture
def cloudformation() -> Iterator[HTTPServer]:
    """Where the answers go."""

    class Ear(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.heard.append((self.headers["Content-Type"], json.loads(body)))  # type: ignore[attr-defined]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Ear)
    server.heard = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def dsn(postgres: Postgres) -> Iterator[str]:
    """An empty database."""
    name = f"schema_{uuid4().hex}"
    with psycopg.connect(postgres.dsn("postgres", SUPERUSER), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {} owner octopus_owner").format(sql.Identifier(name)))
        yield postgres.dsn(name)
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / FIRST).write_text("create table first (id int)")
    (tmp_path / SECOND).write_text("create table second (id int)")
    return tmp_path


Deploy = Callable[..., dict[str, Any]]


@pytest.fixture
def deploy(dsn: str, files: Path, cloudformation: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deploy]:
    """Invokes the function as CloudFormation does, and returns what CloudFormation hears."""
    monkeypatch.setenv("OCTOPUS_OWNER_DATABASE_URL", dsn)
    monkeypatch.setenv("OCTOPUS_MIGRATIONS_DIR", str(files))
    settings.cache_clear()
    services.cache_clear()

    def deploy(kind: str = "Update") -> dict[str, Any]:
        event = {
            "RequestType": kind,
            "ResponseURL": f"http://127.0.0.1:{cloudformation.server_port}/",
            "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/octopus-dev/1",
            "RequestId": str(uuid4()),
            "LogicalResourceId": "Schema",
            "ResourceType": "Custom::OctopusSchema",
            "ResourceProperties": {},
        }
        try:
            handler(event, LambdaContext("octopus-migrate"))
        except Exception as error:
            failure: Exception | None = error
        else:
            failure = None
        content_type, heard = cloudformation.heard[-1]  # type: ignore[attr-defined]
        assert not content_type  # the presigned address allows none
        assert heard["RequestId"] == event["RequestId"]
        assert (heard["Status"] == "FAILED") == (failure is not None)
        return heard

    yield deploy
    services.cache_clear()
    settings.cache_clear()


def tables(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        found = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
    return {name for (name,) in found}


def test_create_applies_all_and_succeeds(deploy: Deploy, dsn: str) -> None:
    assert deploy("Create")["Status"] == "SUCCESS"
    assert tables(dsn) == {"first", "second", "schema_migrations"}


def test_the_resource_keeps_its_identity(deploy: Deploy) -> None:
    """Another physical id would have CloudFormation delete the former one."""
    assert deploy("Create")["PhysicalResourceId"] == deploy()["PhysicalResourceId"]


def test_a_failing_migration_fails_the_deployment_and_leaves_nothing(deploy: Deploy, files: Path, dsn: str) -> None:
    (files / SECOND).write_text("create table half (id int); select nonsense")
    heard = deploy("Create")
    assert heard["Status"] == "FAILED"
    assert 'column "nonsense" does not exist' in heard["Reason"]
    assert f"while applying {SECOND}" in heard["Reason"]
    assert tables(dsn) == {"first", "schema_migrations"}


def test_a_repaired_migration_is_applied_by_the_next_deployment(deploy: Deploy, files: Path, dsn: str) -> None:
    good = (files / SECOND).read_text()
    (files / SECOND).write_text("nonsense")
    deploy("Create")
    (files / SECOND).write_text(good)
    assert deploy()["Status"] == "SUCCESS"
    assert "second" in tables(dsn)


def test_a_downgrade_is_refused(deploy: Deploy, files: Path, dsn: str) -> None:
    deploy("Create")
    with psycopg.connect(dsn) as connection:
        connection.execute("update schema_migrations set applied_at = now() - make_interval(secs => %s)", [ROLLBACK_S])
    (files / SECOND).unlink()
    heard = deploy()
    assert heard["Status"] == "FAILED"
    assert SECOND in heard["Reason"]


def test_a_rollback_of_the_deployment_that_migrated_is_let_through(deploy: Deploy, files: Path, dsn: str) -> None:
    deploy("Create")
    (files / SECOND).unlink()
    assert deploy()["Status"] == "SUCCESS"
    assert "second" in tables(dsn)


def test_a_new_stack_on_a_newer_database_is_refused(deploy: Deploy, files: Path) -> None:
    deploy("Create")
    (files / SECOND).unlink()
    assert deploy("Create")["Status"] == "FAILED"


def test_a_changed_migration_is_refused(deploy: Deploy, files: Path) -> None:
    deploy("Create")
    (files / FIRST).write_text("create table other (id int)")
    heard = deploy()
    assert heard["Status"] == "FAILED"
    assert f"{FIRST} has changed" in heard["Reason"]


def test_a_delete_keeps_the_data(deploy: Deploy, dsn: str) -> None:
    deploy("Create")
    assert deploy("Delete")["Status"] == "SUCCESS"
    assert "first" in tables(dsn)


def test_an_unreachable_database_fails_the_deployment(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTOPUS_OWNER_DATABASE_URL", "postgresql://octopus_owner@127.0.0.1:1/octopus")
    settings.cache_clear()
    services.cache_clear()
    assert "OperationalError" in deploy("Create")["Reason"]


def test_two_at_once_apply_each_migration_once(deploy: Deploy, files: Path, dsn: str) -> None:
    (files / FIRST).write_text("select pg_sleep(0.3); create table first (id int)")
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: asyncio.run(migrate(dsn, files)), range(2)))
    assert sorted(map(len, done)) == [0, 2]
