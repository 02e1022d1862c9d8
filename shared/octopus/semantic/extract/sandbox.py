"""The other side of the process that reads documents."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from octopus.errors import DocumentRejected
from octopus.semantic.extract.limits import Limits
from octopus.semantic.types import Block
from octopus.text import made_storable

_log = logging.getLogger(__name__)
_PIECE = 256 * 1024

_Process = subprocess.Popen[bytes]


class SandboxedReader:
    """Implements `octopus.semantic.ports.Reader`. A process that is done waits for the next document."""

    def __init__(self, limits: Limits, library_path: str | None = None) -> None:
        """`library_path` is LD_LIBRARY_PATH, where Python needs it to start."""
        self._limits = limits
        self._library_path = library_path
        self._idle: list[_Process] = []

    def blocks(self, path: Path, media_type: str) -> Generator[Block]:
        request = {"path": str(path), "media_type": media_type, "limits": asdict(self._limits)}
        process = self._idle.pop() if self._idle else self._start()
        finished = False
        try:
            for message in self._answer(process, request):
                if isinstance(message, dict):
                    finished = True
                    _accept(message)
                    return
                for text, heading, page, kind, header in message:
                    yield Block(made_storable(text), heading and made_storable(heading), page, kind, header)
        finally:
            if finished:
                self._idle.append(process)
            else:  # abandoned half-way, silent or dead
                _end(process)

    def close(self) -> None:
        """End the processes that wait."""
        while self._idle:
            _end(self._idle.pop())

    def _start(self) -> _Process:
        # Nothing of this process's environment, which has credentials; only where the code is.
        environment = {"PYTHONPATH": os.pathsep.join(sys.path), "LANG": "C.UTF-8"}
        if self._library_path:
            environment["LD_LIBRARY_PATH"] = self._library_path
        return subprocess.Popen(
            [sys.executable, "-m", "octopus.semantic.extract"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )

    def _answer(self, process: _Process, request: dict[str, Any]) -> Iterator[Any]:
        """What the process says, line by line. Raises `DocumentRejected` when it falls silent or dies."""
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # then it says nothing either
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        descriptor = process.stdout.fileno()
        rest = b""
        while True:
            ready, _, _ = select.select([descriptor], [], [], self._limits.seconds + 5)
            piece = os.read(descriptor, _PIECE) if ready else b""
            if not piece:
                raise DocumentRejected("The document takes too long to read; split or simplify it.")
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield json.loads(line)


def _end(process: _Process) -> None:
    """Kill the process and what it has forked."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _accept(message: dict[str, Any]) -> None:
    if reason := message.get("rejected"):
        raise DocumentRejected(reason)
    if broken := message.get("broken"):
        _log.warning("a document broke its reader: %s", broken)
        raise DocumentRejected("The document breaks its reader: damaged, or too complex. Save it anew or split it.")
