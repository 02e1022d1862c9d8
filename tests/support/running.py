"""The whole stack in a process of its own, as `make run` starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local.processes import CHECKOUT
from infra.local.state import Running, State

STARTING_S = 120.0


@contextmanager
def running_stack(directory: Path) -> Iterator[Running]:
    """A stack with its state in `directory`, on a free port; stopped at the end."""
    state = State(directory)
    stack = subprocess.Popen(
        [sys.executable, "-m", "infra.local", "run"],
        cwd=CHECKOUT,
        env={**os.environ, "OCTOPUS_STATE": str(directory), "OCTOPUS_PORT": "0", "PYTHONPATH": ".:shared"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        began = time.monotonic()
        while not (running := state.running()):
            assert stack.poll() is None, stack.communicate()[0]
            assert time.monotonic() - began < STARTING_S, "the stack did not start in time"
            time.sleep(0.1)
        yield running
    finally:
        stack.send_signal(signal.SIGINT)
        stack.communicate(timeout=STARTING_S)
