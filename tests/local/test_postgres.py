"""The embedded server: made once, stopped and crashed at will, gone with its starter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from infra.local.postgres import Postgres, with_server

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Postgres]:
    with with_server(tmp_path / "postgres") as server:
        yield server


def rows(server: Postgres) -> list[int]:
    with psycopg.connect(server.dsn()) as connection:
        return [row[0] for row in connection.execute("SELECT n FROM kept ORDER BY n")]


def insert(server: Postgres, n: int) -> None:
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        connection.execute("INSERT INTO kept VALUES (%s)", [n])


def test_it_is_postgres_16_with_pgvector_and_an_owner_who_is_no_superuser(server: Postgres) -> None:
    with psycopg.connect(server.dsn()) as connection:
        version, vector, superuser = connection.execute(
            "SELECT current_setting('server_version_num')::int / 10000,"
            " (SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
            " (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"
        ).fetchone() or (None, "", None)
    assert version == 16
    assert tuple(map(int, vector.split("."))) >= (0, 8)
    assert superuser is False


def test_it_listens_on_no_network_address(server: Postgres) -> None:
    kinds = {connection.family.name for connection in psutil.Process(server.process.pid).net_connections("inet")}
    assert kinds == set()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_what_was_committed_survives_a_stop_at_the_same_address(server: Postgres, mode: str) -> None:
    insert(server, 1)
    address = server.dsn()
    server.stop(mode)  # type: ignore[arg-type]
    with pytest.raises(psycopg.OperationalError):
        rows(server)
    server.start()
    assert server.dsn() == address
    assert rows(server) == [1]


def test_a_path_longer_than_a_socket_address_works_too(tmp_path: Path) -> None:
    with with_server(tmp_path / ("long" * 30) / "postgres") as server:
        insert(server, 1)
        server.stop()
        server.start()
        assert rows(server) == [1]
        sockets = server.dsn().partition("host=")[2].replace("%2F", "/")
    assert not Path(sockets).exists()


def test_only_its_user_can_enter_the_data_directory(server: Postgres) -> None:
    assert server.directory.stat().st_mode & 0o077 == 0


def test_a_pid_file_that_names_a_foreign_process_is_ignored_and_the_process_left_alone(
    server: Postgres,
) -> None:
    insert(server, 1)
    pid_file = server.directory / "postmaster.pid"
    stale = pid_file.read_text().replace(str(server.process.pid), str(os.getpid()), 1)
    server.stop()
    pid_file.write_text(stale)
    server.start()
    assert rows(server) == [1]


def test_an_interrupted_initialization_is_done_again(tmp_path: Path) -> None:
    unfinished = tmp_path / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("16\n")
    with with_server(tmp_path / "postgres") as server:
        insert(server, 1)
    assert not unfinished.exists()


STARTER = """
import sys, time
from pathlib import Path
from infra.local.postgres import with_server
server = with_server(Path(sys.argv[1]))
print(server.process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_it_ends_when_its_starter_is_killed_and_starts_again(tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path / "postgres")],
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
        text=True,
    )
    with starter:
        assert starter.stdout is not None
        server_process = psutil.Process(int(starter.stdout.readline()))
        starter.send_signal(signal.SIGKILL)
    started = time.monotonic()
    with with_server(tmp_path / "postgres") as server:  # also while the old one still shuts down
        assert not server_process.is_running()
        insert(server, 1)
    assert time.monotonic() - started < 10
