"""`make bench-coldstart`: how long each function as built takes until it could serve its first request.

Code and layer are mounted read-only, as in Lambda; Python 3.13 starts anew each time. A handler is ready when it is
imported, chat when its run.sh answers /healthz. Beside it, what `import anthropic` alone takes. Wall time from the
start of the process, so Python's own start is in all of them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from infra.local.lambda_emulator import CHAT, Emulated, Function, python, sandboxed

RUNS = 5
LIMIT = 1.3  # chat may take this many times of `import anthropic`
NAMES = ("Chat", "Api", "IngestDocument", "RemoveDocument", "EndSession", "Sweep", "Migrate")


def imported(function: Function, code: str, **more: str) -> float:
    """Seconds until Python has run `code` where `function` is."""
    environment = {
        "PATH": os.environ["PATH"],
        "LAMBDA_TASK_ROOT": "/var/task",
        "PYTHONPATH": "/var/task:/opt/python",
        **more,
    }
    started = time.perf_counter()
    subprocess.run(sandboxed(function, [str(python()), "-c", code]), env=environment, check=True)
    return time.perf_counter() - started


def ready(function: Function, log: Path, **more: str) -> float:
    """Seconds until run.sh answers."""
    started = time.perf_counter()
    with Emulated(function, more, log):
        return time.perf_counter() - started


def main() -> int:
    chat = Function(CHAT)
    without = {"PYTHONPYCACHEPREFIX": "/tmp/none", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory, "log")
        rows = {
            "python -c pass": lambda: imported(chat, "pass"),
            "import anthropic": lambda: imported(chat, "import anthropic"),
            "import anthropic, no bytecode": lambda: imported(chat, "import anthropic", **without),
            "ChatFunction": lambda: ready(chat, log),
            "ChatFunction, no bytecode": lambda: ready(chat, log, **without),
        }
        for name in NAMES[1:]:
            function = Function(f"{name}Function")
            module = function.handler.removesuffix(".handler")
            rows[function.name] = lambda f=function, m=module: imported(f, f"import {m}")
        taken: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(RUNS):  # in turns, so that a busy moment of the machine touches all alike
            for name, measure in rows.items():
                taken[name].append(measure())
    for name, seconds in taken.items():
        print(f"{name:32}{min(seconds):7.2f} s at best, {statistics.median(seconds):6.2f} s median of {RUNS}")
    share = statistics.median(taken["ChatFunction"]) / statistics.median(taken["import anthropic"])
    print(f"Chat's start is {share:.2f} times `import anthropic` (at most {LIMIT}).")
    return 0 if share <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
