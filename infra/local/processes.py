"""Start and stop child processes that never outlive this one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

CHECKOUT = Path(__file__).resolve().parents[2]
LEASH = Path(__file__).with_name("leash.py")
LOOPBACK = "127.0.0.1"


class ProcessFailed(Exception):
    """A child process ended, or did not answer in time; the message names its log."""


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
            cwd=CHECKOUT,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def start_module(module: str, *arguments: str, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start `python -m module` with the checkout's code on its path."""
    paths = {"PYTHONPATH": f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'shared'}", "PYTHONUNBUFFERED": "1"}
    return start([sys.executable, "-m", module, *arguments], log=log, environment={**environment, **paths})


def stop(child: subprocess.Popen[bytes], *, by: signal.Signals = signal.SIGTERM, seconds: float = 10) -> None:
    """Ask `child` to end; kill it after `seconds`. Nothing happens if it has ended."""
    child.send_signal(by)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def free_port() -> int:
    """A TCP port of the loopback address that nobody listens on now."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_for(url: str, child: subprocess.Popen[bytes], log: Path, *, seconds: float = 120) -> None:
    """Return when a GET of `url` succeeds. Raises `ProcessFailed` when `child` ends first, or time is up."""
    deadline, direct = time.monotonic() + seconds, build_opener(ProxyHandler({}))
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise ProcessFailed(f"{log.stem} has ended with exit code {child.returncode} while starting; see {log}.")
        try:
            with direct.open(url, timeout=seconds):
                return
        except (URLError, ConnectionError):
            time.sleep(0.02)
    raise ProcessFailed(f"{log.stem} has not answered within {seconds:.0f} s; see {log}.")
