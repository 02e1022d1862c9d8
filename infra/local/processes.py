"""Start and stop child processes that never outlive this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LEASH = Path(__file__).with_name("leash.py")


def leashed(
    command: Sequence[str], *, user: int | None = None, death_signal: signal.Signals = signal.SIGTERM
) -> list[str]:
    """The command line that runs `command` (its first element an absolute path) as `user`, and sends it
    `death_signal` when the *thread* that starts it ends: start children from the main thread."""
    leash = [sys.executable, "-S", "-E", str(LEASH), str(os.getpid()), str(int(death_signal))]
    return [*leash, str(-1 if user is None else user), *command]


def start(
    command: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    user: int | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start `command` (see `leashed`) in a session of its own, so that the terminal's Ctrl-C reaches this
    process only. Output is appended to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            leashed(command, user=user, death_signal=death_signal),
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(child: subprocess.Popen[bytes], *, by: signal.Signals = signal.SIGTERM, seconds: float = 10) -> None:
    """Ask `child` to end; kill it after `seconds`. Nothing happens if it has ended."""
    child.send_signal(by)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
