"""`python -m infra.local` as a person uses it: the real stack, started, found, stopped and killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
import pytest

from infra.local.client import Client
from infra.local.processes import CHECKOUT
from infra.local.state import Running, State

STARTING_SECONDS = 120.0


class Machine:
    """One state directory, with what a person does at a terminal."""

    def __init__(self, directory: Path) -> None:
        self.state = State(directory)
        self._environment = {**os.environ, "OCTOPUS_STATE": str(directory), "OCTOPUS_PORT": "0"}

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "infra.local", *arguments],
            cwd=CHECKOUT,
            env={**self._environment, **variables},
            capture_output=True,
            text=True,
            timeout=STARTING_SECONDS,
            check=False,
        )

    @contextmanager
    def started(self) -> Iterator[tuple[subprocess.Popen[str], Running, list[psutil.Process]]]:
        """A stack that is ready, what it says of itself, and all its processes. Killed at the end if still
        there."""
        stack = subprocess.Popen(
            [sys.executable, "-m", "infra.local", "run"],
            cwd=CHECKOUT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            until(lambda: self.state.running() is not None or stack.poll() is not None)
            running = self.state.running()
            assert running, stack.communicate()[0]
            yield stack, running, psutil.Process(stack.pid).children(recursive=True)
        finally:
            stack.kill()
            stack.communicate()


def until(done: Callable[[], bool], seconds: float = STARTING_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def left(processes: list[psutil.Process]) -> list[str]:
    """Those that still run."""
    return [" ".join(one.cmdline()) for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine") / ".octopus")


def agents(running: Running) -> list[str]:
    with Client(running.address, "demo", "alex") as client:
        return sorted(agent["name"] for agent in client.get("/v1/agents"))


def test_it_starts_is_found_by_other_commands_and_stops_whole_on_ctrl_c(machine: Machine) -> None:
    with machine.started() as (stack, running, processes):
        assert {"postgres", "moto", "model", "gateway", "worker"} == set(running.processes)
        assert "aria" in agents(running)
        assert "<html" in httpx2.get(running.urls["console"]).text

        second = machine.run("run")
        assert second.returncode == 1
        assert second.stderr == f"Octopus is already running at {running.address} (process {stack.pid}).\n"
        assert running.address in machine.run("status").stdout

        token = machine.run("token", "--tenant", "acme", "--user", "ada").stdout.strip()
        answer = httpx2.get(f"{running.address}/v1/agents", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200

        busy = Machine(machine.state.directory.with_name("other"))
        port = running.address.rpartition(":")[2]
        refused = busy.run("run", OCTOPUS_PORT=port)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert f"Port {port} is in use" in refused.stderr
        assert "OCTOPUS_PORT=" in refused.stderr

        stack.send_signal(signal.SIGINT)
        output, _ = stack.communicate(timeout=30)
        assert stack.returncode == 0
        assert re.search(r"PostgreSQL 16 with pgvector +\d+\.\d s\n", output)
        assert left(processes) == []
    assert machine.state.running() is None
    assert not (machine.state.directory / "stack.json").exists()
    assert machine.run("status").returncode == 1


def test_data_is_kept_and_a_killed_stack_leaves_nothing_and_starts_again(machine: Machine) -> None:
    with machine.started() as (stack, running, processes):
        with Client(running.address, "demo", "alex", ["OctopusAdmin"]) as client:
            client.post("/v1/agents", {"name": "b", "system_prompt": "B"})
        stack.kill()
        stack.wait()
        if sys.platform == "linux":
            until(lambda: left(processes) == [], seconds=20)
    assert machine.state.running() is None

    with machine.started() as (stack, running, processes):
        assert agents(running) == ["aria", "b"]
        # The document came back into the bucket, and indexing it again changed nothing.
        assert [entry.name for entry in (machine.state.directory / "objects").glob("*.json")] != []
        assert machine.run("stop").returncode == 0
        stack.wait()
        assert left(processes) == []


def test_the_stack_stops_and_says_which_piece_has_ended(machine: Machine) -> None:
    with machine.started() as (stack, running, processes):
        psutil.Process(running.processes["worker"]).kill()
        output, _ = stack.communicate(timeout=30)
        assert stack.returncode == 1
        assert f"worker has ended with signal 9; see {machine.state.log('worker')}." in output
        assert left(processes) == []


def test_fresh_forgets_everything(tmp_path: Path) -> None:
    for name in ("postgres", "objects"):
        (tmp_path / name).mkdir()
    (tmp_path / "issuer.pem").touch()
    state = State(tmp_path)
    state.acquire(fresh=True)
    state.release()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["lock", "logs"]


@pytest.mark.parametrize("port", ["abc", "70000", "-1"])
def test_an_impossible_port_is_refused(machine: Machine, port: str) -> None:
    refused = machine.run("run", OCTOPUS_PORT=port)
    assert refused.returncode == 1
    assert refused.stderr == f"OCTOPUS_PORT={port} is no port: set a number from 0 to 65535.\n"


def test_a_port_in_use_is_no_reason_to_touch_the_other_program(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert machine.run("run", OCTOPUS_PORT=str(port)).returncode == 1
        socket.create_connection(("127.0.0.1", port)).close()
