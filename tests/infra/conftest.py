"""Fixtures of the stack's tests: one workbench for all, with functions that `make sam-local` has built."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from string import Template
from typing import Any

import psycopg
import pytest

from infra.local.lambda_emulator import Emulated, Function
from infra.local.postgres import SUPERUSER
from infra.local.processes import CHECKOUT
from infra.local.workbench import Workbench

EVENTS = CHECKOUT / "events"
OBJECT = "acme/0d9b3a52-6c1f-4f7e-9a35-0b8d1f6c2e10/5f0f7c1c-9d0b-4f43-8f0a-7a2f7c3f6b11/Refund_policy_2026.md"


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """What the functions talk to, with an empty database."""
    with Workbench(tmp_path_factory.mktemp("workbench")) as bench:
        yield bench


@pytest.fixture(scope="session")
def start(bench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Emulated]]:
    """Starts a function once and keeps it for the session; further variables start another one."""
    logs, started = tmp_path_factory.mktemp("functions"), dict[str, Emulated]()
    with ExitStack() as stack:

        def start(name: str, **variables: str) -> Emulated:
            key = json.dumps([name, variables])
            if key not in started:
                log = logs / f"{len(started)}-{name}.log"
                started[key] = stack.enter_context(Emulated(Function(name), bench.environment | variables, log))
            return started[key]

        yield start


@pytest.fixture(scope="session")
def migrated(bench: Workbench, start: Callable[..., Emulated]) -> Iterator[psycopg.Connection[Any]]:
    """The bench's database, migrated by the built function itself, with the rows that the events speak of."""
    invocation = start("MigrateFunction").invoke(event(bench, "schema-create"))
    assert "applied" in invocation.payload, invocation.payload
    with psycopg.connect(bench.postgres.dsn(user=SUPERUSER), autocommit=True) as connection:
        connection.execute((EVENTS / "rows.sql").read_bytes())
        yield connection


def event(bench: Workbench, name: str) -> Any:
    """The event of a file, with a token that holds now and an address that answers."""
    known = {"TOKEN": bench.token(), "RESPONSE_URL": f"{bench.stand_ins.url}/custom-resource"}
    return json.loads(Template((EVENTS / f"{name}.json").read_text()).safe_substitute(known))


@pytest.fixture
def aws_of_the_bench(bench: Workbench, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 in the tests talks to the bench's moto."""
    for name, value in bench.environment.items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
