"""Lambda's runtime API for one function, with a trace for each invocation, which AWS's emulator does not pass on.

Source: "Using the Lambda runtime API" in the Lambda developer guide.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from infra.local import processes
from infra.local.lambda_emulator import Function, lambda_environment, python, sandboxed

TIMEOUT_S = 60


class RuntimeApi(ThreadingHTTPServer):
    """Gives AWS's runtime client one event after the other."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events: queue.Queue[tuple[Any, str] | None] = queue.Queue()
        self.answers: queue.Queue[Any] = queue.Queue()

    def invoke(self, event: Any, trace: str) -> Any:
        self.events.put((event, trace))
        return self.answers.get(timeout=TIMEOUT_S)


class _Handler(BaseHTTPRequestHandler):
    server: RuntimeApi

    def do_GET(self) -> None:
        """The next invocation."""
        given = self.server.events.get()
        if given is None:
            return
        body = json.dumps(given[0]).encode()
        self.send_response(200)
        self.send_header("Lambda-Runtime-Aws-Request-Id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
        self.send_header("Lambda-Runtime-Deadline-Ms", str(int((time.time() + TIMEOUT_S) * 1000)))
        self.send_header("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:f")
        self.send_header("Lambda-Runtime-Trace-Id", given[1])
        self.send_header("Content-Type", "application/json")  # without it, the runtime client crashes
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """A response or an error."""
        self.server.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def traced(function: Function, environment: dict[str, str], log: Path) -> Iterator[RuntimeApi]:
    """The function as built, under AWS's runtime client."""
    server = RuntimeApi()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    variables = {**lambda_environment(function), **environment}
    variables["AWS_LAMBDA_RUNTIME_API"] = f"127.0.0.1:{server.server_port}"
    child = processes.start(
        sandboxed(function, [str(python()), "-m", "awslambdaric", function.handler]), log=log, environment=variables
    )
    try:
        yield server
    finally:
        processes.stop(child)
        server.events.put(None)
        server.shutdown()
        thread.join()
        server.server_close()
