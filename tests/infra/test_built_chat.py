"""The chat function that `sam build` made, started by its own run.sh as Lambda Web Adapter starts it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from infra.local.lambda_emulator import Emulated, Function
from infra.local.processes import LOOPBACK
from infra.local.web_adapter import forward
from infra.local.workbench import Workbench
from tests.infra.conftest import event
from tests.infra.runtime_api import traced

Start = Callable[..., Emulated]
TRACE_ID, PARENT = "1-691e9f52-3f1c2a6b7d8e9f0011223344", "53995c3f42cd8ad8"  # of events/chat-url.json


@pytest.fixture
def turn(bench: Workbench) -> dict[str, Any]:
    """A function URL's event, of a message that is new to its conversation."""
    return renamed(event(bench, "chat-url"), f"m-{time.time_ns()}")


def renamed(request: dict[str, Any], message_id: str) -> dict[str, Any]:
    return {**request, "body": json.dumps(json.loads(request["body"]) | {"message_id": message_id})}


def events_of(stream: str) -> list[str]:
    return [line.removeprefix("event: ") for line in stream.splitlines() if line.startswith("event: ")]


def test_it_streams(start: Start, turn: dict[str, Any], migrated: psycopg.Connection[Any]) -> None:
    chat = start("ChatFunction")
    with forward(turn, chat.url) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        arrived = [(time.monotonic(), part) for part in answer.iter_text()]
    names = events_of("".join(part for _, part in arrived))
    assert names[0] == "turn_start"
    assert names[-1] == "turn_end"
    # The offline model waits 5 ms between words: what is buffered arrives at once.
    assert len(arrived) > names.count("token") / 2
    assert arrived[-1][0] - arrived[0][0] > 0.005 * names.count("token") / 2


def test_the_message_is_in_the_log(start: Start, turn: dict[str, Any], migrated: psycopg.Connection[Any]) -> None:
    with forward(turn, start("ChatFunction").url) as answer:
        answer.read()
    message_id = json.loads(turn["body"])["message_id"]
    row = migrated.execute("select status from turns where client_message_id = %s", [message_id]).fetchone()
    assert row == ("completed",)


def test_a_request_without_token_is_refused(start: Start, turn: dict[str, Any]) -> None:
    del turn["headers"]["authorization"]
    with forward(turn, start("ChatFunction").url) as answer:
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"


def test_each_line_names_the_request(start: Start, turn: dict[str, Any], migrated: psycopg.Connection[Any]) -> None:
    chat = start("ChatFunction")
    with forward(turn, chat.url) as answer:
        answer.read()
    lines = [json.loads(line) for line in chat.log.read_text().splitlines() if line.startswith("{")]
    said = [line for line in lines if line.get("message") == "turn"][-1]
    assert said["function_request_id"] == "8476a536-e9f4-11e8-9739-2dfe598c3fcd"
    assert said["correlation_id"] == "e1506fd5-9e7b-434f-bd42-4f8fa224b599"
    assert said["xray_trace_id"] == TRACE_ID
    metrics = [line for line in lines if "_aws" in line][-1]
    assert metrics["Turns"] == [1.0]


class Daemon:
    """Stands where Lambda's X-Ray daemon listens."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((LOOPBACK, 0))
        self._socket.settimeout(1)
        self.address = f"{LOOPBACK}:{self._socket.getsockname()[1]}"

    def received(self) -> list[dict[str, Any]]:
        """All segments, until none has come for a second."""
        segments = []
        try:
            while True:
                _header, _, document = self._socket.recv(65_507).decode().partition("\n")
                segments.append(json.loads(document))
        except TimeoutError:
            return segments

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    daemon = Daemon()
    yield daemon
    daemon.close()


def tracing(daemon: Daemon) -> dict[str, str]:
    return {
        "POWERTOOLS_TRACE_DISABLED": "false",
        "AWS_XRAY_SDK_ENABLED": "true",
        "AWS_XRAY_DAEMON_ADDRESS": daemon.address,
    }


def check_turn(segments: list[dict[str, Any]], root_name: str, parent: str) -> None:
    """One tree: the request under Lambda's own segment, each store once and directly under the request."""
    named = {segment["name"]: segment for segment in segments}
    assert len(named) == len(segments)
    assert {segment["trace_id"] for segment in segments} == {TRACE_ID}
    assert named[root_name]["parent_id"] == parent
    for store in ("## procedural", "## semantic", "## episodic"):
        assert named[store]["parent_id"] == named[root_name]["id"]
        assert named[store]["end_time"] > named[store]["start_time"]


def test_one_trace_per_turn_behind_the_adapter(
    start: Start, daemon: Daemon, turn: dict[str, Any], migrated: psycopg.Connection[Any]
) -> None:
    chat = start("ChatFunction", **tracing(daemon))
    for _ in range(2):  # the second shows that nothing leaks from the first
        with forward(renamed(turn, f"m-{time.time_ns()}"), chat.url) as answer:
            answer.read()
        check_turn(daemon.received(), "## chat", PARENT)


def test_one_trace_per_turn_through_the_api(
    bench: Workbench, daemon: Daemon, migrated: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """The buffered turn, under AWS's own runtime client."""
    request = event(bench, "api-chat")
    trace = f"Root={TRACE_ID};Parent={PARENT};Sampled=1"
    with traced(Function("ApiFunction"), bench.environment | tracing(daemon), tmp_path / "log") as api:
        for _ in range(2):
            answer = api.invoke(renamed(request, f"m-{time.time_ns()}"), trace)
            assert answer["statusCode"] == 200
            check_turn(daemon.received(), "## handler", PARENT)
