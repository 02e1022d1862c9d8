"""The other side of the process that reads documents."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from octopus.errors import DocumentRejected
from octopus.semantic.extract.limits import Limits
from octopus.semantic.types import Block
from octopus.text import made_storable

_PIECE = 256 * 1024


class SandboxedReader:
    """Implements `octopus.semantic.ports.Reader`: one document at a time, in a process of its own."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._turn = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def blocks(self, path: Path, media_type: str) -> Iterator[Block]:
        request = {"path": str(path), "media_type": media_type, "limits": asdict(self._limits)}
        with self._turn:
            process = self._started()
            finished = False
            try:
                _send(process, request)
                for message in self._messages(process):
                    if isinstance(message, dict):
                        finished = True
                        if reason := message.get("rejected"):
                            raise DocumentRejected(reason)
                        return
                    for text, heading, page, kind, header in message:
                        yield Block(made_storable(text), heading and made_storable(heading), page, kind, header)
            finally:
                if not finished:  # abandoned half-way, silent or dead
                    self.close()

    def close(self) -> None:
        """End the process and what it has forked."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "octopus.semantic.extract"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Nothing of this process's environment, which has credentials; only where the code is.
                env={"PYTHONPATH": os.pathsep.join(sys.path), "LANG": "C.UTF-8"},
                start_new_session=True,
            )
        return self._process

    def _messages(self, process: subprocess.Popen[bytes]) -> Iterator[Any]:
        """What the process says, line by line. Raises `DocumentRejected` when it falls silent or dies."""
        assert process.stdout is not None
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


def _send(process: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
