"""Start the whole stack in order, watch over it, and stop all of it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from infra.local import processes, seed
from infra.local.environment import MIGRATIONS, Places, child_environment, is_offline, model_key
from infra.local.postgres import Postgres
from infra.local.processes import LOOPBACK, free_port
from infra.local.state import Running, State

DEFAULT_PORT = "8080"
WATCH_SECONDS = 0.5
STOP_SECONDS = 15.0  # for each piece; more than the worker takes to empty its queues
STOP_ORDER = ("gateway", "worker", "moto", "model")  # no new work, work off what there is, then what it needs


class StackFailed(Exception):
    """The stack cannot start or go on; the message says what to change or where to look."""


class Stack:
    """All pieces of one stack: `start` it, `watch` it, and `stop` it whatever happens."""

    def __init__(self, state: State, user: Mapping[str, str]) -> None:
        """`user` is the environment of whoever starts it. Raises `StackFailed` for an impossible port."""
        self._state = state
        self._user = user
        self._port = _port(user.get("OCTOPUS_PORT") or DEFAULT_PORT)
        self._address = f"http://{LOOPBACK}:{self._port}"
        self._postgres = Postgres(state.postgres, log=state.log("postgres"))
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *, fresh: bool = False) -> Running:
        """Start everything, with a line for each step, and return when all of it answers.

        Raises `AlreadyRunning`, `StackFailed`, `ProcessFailed` or `PostgresFailed`.
        """
        self._state.acquire(fresh=fresh)
        self._refuse_busy_port()
        print("Starting Octopus")
        with step("PostgreSQL 16 with pgvector"):
            self._postgres.start()
            self._children["postgres"] = self._postgres.process
        moto, model = free_port(), free_port()
        places = Places(
            address=self._address,
            aws=f"http://{LOOPBACK}:{moto}",
            offline_model=f"http://{LOOPBACK}:{model}",
            state=self._state.directory,
            owner_dsn=self._postgres.dsn(user="octopus_owner"),
            application_dsn=self._postgres.dsn(user="octopus_app"),
            sweep_dsn=self._postgres.dsn(user="octopus_sweep"),
        )
        environment = child_environment(places, self._user)
        # These take a second to import what they need, and do it while the next steps go on.
        self._start("moto", environment, "moto.server", "-H", LOOPBACK, "-p", str(moto))
        self._start("gateway", environment, "infra.local.gateway", str(self._port))
        if is_offline(self._user):
            self._start("model", environment, "infra.local.offline_model", str(model))
        with step("Migrations"):
            _migrate(places.owner_dsn)
        with step("S3, SQS, EventBridge, Secrets Manager"):
            self._wait("moto", f"{places.aws}/moto-api/")
            self._make_resources(environment)
        self._start("worker", environment, "infra.local.worker")
        if is_offline(self._user):
            with step("Offline model"):
                self._wait("model", f"{places.offline_model}/healthz")
        with step("Chat, API and console"):
            self._wait("gateway", f"{self._address}/healthz")
        with step("Demo agent, procedure and document"):
            seed.seed(self._address, meanwhile=self.check)
        running = self._running(places, environment)
        self._state.announce(running)
        return running

    def watch(self) -> None:
        """Return never; raise `StackFailed` when a piece ends."""
        while True:
            self.check()
            time.sleep(WATCH_SECONDS)

    def check(self) -> None:
        """Raise `StackFailed` if a piece has ended."""
        for name, child in self._children.items():
            if (code := child.poll()) is not None:
                how = f"exit code {code}" if code >= 0 else f"signal {-code}"
                raise StackFailed(f"{name} has ended with {how}; see {self._state.log(name)}.")

    def stop(self) -> None:
        """End what was started; what is in the queues is worked off before."""
        for name in STOP_ORDER:
            if child := self._children.get(name):
                processes.stop(child, seconds=STOP_SECONDS)
        self._postgres.stop()
        self._state.release()

    def _start(self, name: str, environment: Mapping[str, str], module: str, *arguments: str) -> None:
        self._children[name] = processes.start_module(
            module, *arguments, log=self._state.log(name), environment=environment
        )

    def _wait(self, name: str, url: str) -> None:
        processes.wait_for(url, self._children[name], self._state.log(name))

    def _make_resources(self, environment: Mapping[str, str]) -> None:
        """In a process of its own: an AWS client must never run where the user's environment is."""
        log = self._state.log("aws")
        key = {"ANTHROPIC_API_KEY": model_key(self._user)}
        maker = processes.start_module("infra.local.aws", log=log, environment={**environment, **key})
        if maker.wait() != 0:
            raise StackFailed(f"The AWS resources could not be made; see {log}.")

    def _refuse_busy_port(self) -> None:
        try:
            socket.create_server((LOOPBACK, self._port)).close()
        except OSError as error:
            raise StackFailed(
                f"Port {self._port} is in use by another program: choose another one, "
                f"as in `OCTOPUS_PORT={self._port + 1} make run`."
            ) from error

    def _running(self, places: Places, environment: Mapping[str, str]) -> Running:
        return Running(
            pid=os.getpid(),
            address=self._address,
            urls={
                "console": f"{self._address}/",
                "chat": f"{self._address}/v1/chat",
                "api": f"{self._address}/v1",
                "issuer": f"{self._address}/issuer",
                "aws": places.aws,
                "model": environment.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
            },
            database_url=places.application_dsn,
            processes={name: child.pid for name, child in self._children.items()},
        )


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print `name`, and when the block is done the seconds that it took."""
    started = time.monotonic()
    print(f"  {name:<42}", end="", flush=True)
    try:
        yield
    except BaseException:
        print()
        raise
    print(f"{time.monotonic() - started:5.1f} s", flush=True)


def _migrate(dsn: str) -> None:
    from octopus.cloud.migrations import MigrationRefused, migrate  # psycopg takes a while to import

    try:
        asyncio.run(migrate(dsn, MIGRATIONS))
    except MigrationRefused as error:
        raise StackFailed(f"{error} Or start over: `make run FRESH=1` forgets the data.") from error


def _port(text: str) -> int:
    """A port number; 0 chooses a free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise StackFailed(f"OCTOPUS_PORT={text} is no port: set a number from 0 to 65535.")
    return int(text) or free_port()
