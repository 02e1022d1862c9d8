"""`python -m infra.local run | demo | token | status | stop`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from infra.local.client import ClientFailed, token
from infra.local.environment import is_offline
from infra.local.postgres import PostgresFailed
from infra.local.processes import CHECKOUT, ProcessFailed
from infra.local.seed import GROUPS, TENANT, USER, SeedFailed
from infra.local.stack import Stack, StackFailed
from infra.local.state import AlreadyRunning, Running, State

STOPPING_SECONDS = 60.0
INTERRUPTED = 130  # the exit code of a shell command that Ctrl-C has ended


def main(arguments: list[str]) -> int:
    """The exit code. What goes wrong on purpose is one line on standard error."""
    chosen = _parser().parse_args(arguments)
    state = State.of(os.environ)
    try:
        match chosen.command:
            case "run":
                return _run(state, fresh=chosen.fresh)
            case "demo":
                return _demo(state)
            case "token":
                print(token(_running(state).address, chosen.tenant, chosen.user, chosen.group))
            case "status":
                _describe(_running(state))
            case _:
                return _stop(state)
    except (AlreadyRunning, StackFailed, ProcessFailed, PostgresFailed, ClientFailed, SeedFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.local", description="Octopus on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start the stack and keep it until Ctrl-C")
    run.add_argument("--fresh", action="store_true", help="forget the data of earlier starts")
    commands.add_parser("demo", help="drive the stack, started if need be, through all four memories")
    token = commands.add_parser("token", help="print a token for a user of a tenant")
    token.add_argument("--tenant", default=TENANT)
    token.add_argument("--user", default=USER)
    token.add_argument("--group", action="append", default=[], help="OctopusAdmin or OctopusDebug; may repeat")
    commands.add_parser("status", help="say where the stack runs")
    commands.add_parser("stop", help="stop the running stack")
    return parser


def _run(state: State, *, fresh: bool) -> int:
    with _stack(state, fresh=fresh) as (stack, running):
        _describe(running)
        bearer = token(running.address, TENANT, USER, GROUPS)
        print(f"\n  Sign in with this link: {running.urls['console']}#token={bearer}")
        print(f"  or this token ({USER} of {TENANT}, {' and '.join(GROUPS)}):\n\n{bearer}\n")
        if is_offline(os.environ):
            print("Answers come from the offline model, which quotes memory; set ANTHROPIC_API_KEY to talk to Claude.")
        print("Ctrl-C stops everything.", flush=True)
        try:
            stack.watch()
        except KeyboardInterrupt:
            print()
    return 0


def _demo(state: State) -> int:
    """On the running stack, or on one that is started for it and stopped afterwards."""
    from infra.local.demo import main as demo

    if running := state.running():
        return demo(running.address)
    try:
        with _stack(state) as (_, started):
            return demo(started.address)
    except KeyboardInterrupt:
        return INTERRUPTED


@contextmanager
def _stack(state: State, *, fresh: bool = False) -> Iterator[tuple[Stack, Running]]:
    """A stack for the time of the block. SIGTERM and a closed terminal end it as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    stack = Stack(state, os.environ)
    try:
        yield stack, stack.start(fresh=fresh)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # stopping takes seconds and cannot be hurried
        stack.stop()


def _stop(state: State) -> int:
    pid = state.holder()
    if pid is None:
        print("Octopus is not running.")
        return 0
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOPPING_SECONDS
    while state.holder() == pid:
        if time.monotonic() > deadline:
            raise StackFailed(f"The stack (process {pid}) has not stopped after {STOPPING_SECONDS:.0f} s.")
        time.sleep(0.05)
    return 0


def _running(state: State) -> Running:
    running = state.running()
    if running is None:
        raise StackFailed("Octopus is not running: start it with `make run`.")
    return running


def _describe(running: Running) -> None:
    print(f"Octopus is at {running.address} (process {running.pid})")
    for name, url in running.urls.items():
        print(f"  {name:<8} {url}")


if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT / "shared"))
    sys.exit(main(sys.argv[1:]))
