"""The directory `.octopus`: where everything of a stack is kept, and how other commands find a running
one."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from infra.local.processes import CHECKOUT


class AlreadyRunning(Exception):
    """Another process has the stack of this directory; the message says where."""


@dataclass(frozen=True)
class Running:
    """A stack that is ready."""

    pid: int  # of the process that started it and stops it
    address: str  # http://host:port of everything that a client needs
    urls: Mapping[str, str]  # by name: console, chat, api, issuer, aws, model
    database_url: str  # of the application role
    processes: Mapping[str, int]  # the process id of each piece


class State:
    """Paths, the lock that one stack at a time holds, and the announcement of a running one.

    The lock is the system's: it ends with its holder, however that ends, so that nothing can be stale.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.postgres = directory / "postgres"
        self.logs = directory / "logs"
        self.issuer_key = directory / "issuer.pem"
        self._announcement = directory / "stack.json"
        self._lock_file = directory / "lock"
        self._lock: TextIO | None = None

    @staticmethod
    def of(user: Mapping[str, str]) -> State:
        """The directory in the checkout, or the one that OCTOPUS_STATE names."""
        return State(Path(user.get("OCTOPUS_STATE") or CHECKOUT / ".octopus").resolve())

    def acquire(self, *, fresh: bool) -> None:
        """Take the lock, and make the directory ready; `fresh` forgets what was in it. Raises
        `AlreadyRunning`."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self._lock_file.open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise AlreadyRunning(self._whose()) from None
        self._lock = lock
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._announcement.unlink(missing_ok=True)
        if fresh:
            self._forget()
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir()

    def release(self) -> None:
        """Let the next stack have the directory, if this one has it."""
        if self._lock:
            self._announcement.unlink(missing_ok=True)
            self._lock.close()

    def announce(self, running: Running) -> None:
        """Let other commands find the stack."""
        unfinished = self._announcement.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(running), indent=2))
        unfinished.rename(self._announcement)

    def running(self) -> Running | None:
        """The stack that runs in this directory and is ready."""
        if self.holder() is None:
            return None
        try:
            return Running(**json.loads(self._announcement.read_text()))
        except FileNotFoundError:
            return None

    def holder(self) -> int | None:
        """The process that has the lock."""
        try:
            lock = self._lock_file.open()
        except FileNotFoundError:
            return None
        with lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    lock.seek(0)
                    if pid := lock.read():  # else it has not written it yet
                        return int(pid)
                else:
                    return None

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def _whose(self) -> str:
        running = self.running()
        if running is None:
            return "Octopus is just starting or stopping in another process: try again in a moment."
        return f"Octopus is already running at {running.address} (process {running.pid})."

    def _forget(self) -> None:
        for entry in self.directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry != self._lock_file:
                entry.unlink()
