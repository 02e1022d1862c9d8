"""Functions that `sam build` has made, run as on Lambda without Docker.

AWS's runtime interface emulator (it comes with the SAM CLI) and AWS's runtime client for Python 3.13, with
the code at /var/task and the layer at /opt, both read-only. The emulator buffers streams and knows no web
adapter: the chat function is started by its own run.sh, as the adapter would.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

from infra.build import package
from infra.local import processes
from infra.local.processes import CHECKOUT, LOOPBACK, free_port

BUILD = CHECKOUT / ".aws-sam" / "local"
CLIENT = CHECKOUT / ".aws-sam" / "runtime-client"
SANDBOX = Path(__file__).with_name("lambda_sandbox.sh")
LAYER = "SharedLayer"
CHAT = "ChatFunction"
TIMEOUT_S = 60.0


class NotBuilt(Exception):
    """Something that the emulator needs is missing; the message says how to get it."""


@dataclass(frozen=True)
class Function:
    """A function of template.yaml by its logical id, such as ``EndSessionFunction``."""

    name: str

    @property
    def task(self) -> Path:
        if not (BUILD / self.name).is_dir():
            raise NotBuilt(f"{BUILD / self.name} does not exist: run `make sam-local`.")
        return BUILD / self.name

    @property
    def handler(self) -> str:
        """The same rule as in template.yaml, held by a test."""
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in self.name.removesuffix("Function"))
        return f"functions.{words.lstrip('_')}.handler.handler"


@dataclass(frozen=True)
class Invocation:
    """What a function answered: its result, or on failure ``{errorType, errorMessage, …}``; and what it
    logged."""

    payload: Any
    log: list[str]

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The structured lines of the log."""
        found = []
        for line in self.log:
            with suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return [line for line in found if isinstance(line, dict)]


class Emulated:
    """A started function; as a context manager it ends with the block."""

    def __init__(self, function: Function, environment: Mapping[str, str], log: Path) -> None:
        self.function = function
        self.log = log
        self._environment = environment
        self._client = httpx2.Client(timeout=TIMEOUT_S, trust_env=False)

    def __enter__(self) -> Self:
        port = free_port()
        self._url = f"http://{LOOPBACK}:{port}"
        if self.function.name == CHAT:
            self._start(["/var/task/run.sh"], {"AWS_LWA_PORT": str(port)})
            processes.wait_for(f"{self._url}/healthz", self._process, self.log, seconds=TIMEOUT_S)
        else:
            emulator = [str(_emulator()), "--runtime-interface-emulator-address", f"{LOOPBACK}:{port}"]
            emulator += ["--runtime-api-address", f"{LOOPBACK}:{free_port()}"]
            self._start([*emulator, str(python()), "-m", "awslambdaric", self.function.handler], {})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)  # the emulator and its child, a session of their own
        self._process.wait(10)

    @property
    def url(self) -> str:
        """Where the chat app listens, or the emulator."""
        return self._url

    @property
    def process(self) -> subprocess.Popen[bytes]:
        return self._process

    def invoke(self, event: Any) -> Invocation:
        """Send `event`, as Lambda does for one request. The first call waits for the initialization."""
        before = self.log.stat().st_size
        transport = httpx2.HTTPTransport(retries=20)  # until the emulator listens
        with httpx2.Client(timeout=TIMEOUT_S, trust_env=False, transport=transport) as client:
            answer = client.post(f"{self._url}/2015-03-31/functions/function/invocations", json=event)
        with self.log.open("rb") as log:
            log.seek(before)
            written = log.read().decode(errors="replace").splitlines()
        return Invocation(answer.json() if answer.content else None, written)

    def _start(self, command: list[str], more: Mapping[str, str]) -> None:
        self._process = processes.start(
            sandboxed(self.function, command),
            log=self.log,
            environment={**lambda_environment(self.function), **self._environment, **more},
        )


def lambda_environment(function: Function) -> dict[str, str]:
    """As in "Defined runtime environment variables" of the Lambda developer guide."""
    return {
        "AWS_LAMBDA_FUNCTION_NAME": f"octopus-{function.name}",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1769",
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(round(TIMEOUT_S)),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "LAMBDA_TASK_ROOT": "/var/task",
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PATH": f"{python().parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": f"/var/task:/opt/python:{runtime_client()}",
    }


def sandboxed(function: Function, command: list[str]) -> list[str]:
    """The command line that runs `command` with the function's code and layer mounted as in Lambda."""
    isolated = ["/usr/bin/env", "unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    return [*isolated, "sh", str(SANDBOX), str(function.task), str(BUILD / LAYER), *command]


def python() -> Path:
    """Python 3.13, which Lambda runs. Raises `NotBuilt`."""
    candidates = ["python3.13", *map(str, Path.home().glob(".pyenv/versions/3.13.*/bin/python3.13"))]
    for candidate in candidates:
        with suppress(OSError):
            where = [candidate, "-c", "import sys; print(sys.executable)"]
            done = subprocess.run(where, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return Path(done.stdout.strip())
    raise NotBuilt("Lambda runs Python 3.13: put python3.13 on the PATH, or install it with pyenv.")


def runtime_client() -> Path:
    """AWS's runtime client for Python 3.13, installed once by the hashes of requirements/dev.txt."""
    if not CLIENT.exists():
        unfinished = CLIENT.with_name("runtime-client.unfinished")
        wanted = {"awslambdaric", "simplejson", "snapshot-restore-py"}
        package.install(unfinished, platform.machine(), wanted.__contains__, CHECKOUT / "requirements" / "dev.txt")
        unfinished.rename(CLIENT)
    return CLIENT


def _emulator() -> Path:
    suffix = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    found = list(CHECKOUT.glob(f".venv-sam/lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-{suffix}"))
    if not found:
        raise NotBuilt("The SAM CLI brings the emulator: run `make setup-sam`.")
    return found[0]
