"""The worker hands each message to its function, and deletes what succeeded."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest

from infra.local import worker as worker_module
from infra.local.environment import BUCKET, EVENT_BUS, INGEST, SESSION_ENDED
from infra.local.mirror import Mirror
from infra.local.worker import Worker
from tests.local.aws import Aws


class Functions:
    """Stand where the handlers are: keep the events; `failing` bodies are reported as failed."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.failing = ""

    def __call__(self, function: str, event: dict[str, Any]) -> Any:
        self.calls.append((function, event))
        if self.failing and self.failing in json.dumps(event):
            if function == "end_session":
                raise RuntimeError("boom")
            failed = [record["messageId"] for record in event["Records"] if self.failing in record["body"]]
            return {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}
        return None

    def keys(self, function: str) -> list[str]:
        """Of the objects that the function was told of, in order."""
        bodies = [
            json.loads(record["body"]) for name, event in self.calls if name == function for record in event["Records"]
        ]
        return [record["s3"]["object"]["key"] for body in bodies for record in body.get("Records", [])]

    def called(self, function: str) -> list[dict[str, Any]]:
        return [event for name, event in self.calls if name == function]


@pytest.fixture
def functions() -> Functions:
    return Functions()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "WAIT_SECONDS", 1)
    monkeypatch.setattr(worker_module, "RETRY_SECONDS", 0)


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def running(aws: Aws, functions: Functions) -> Iterator[None]:
    """Until the block ends and the worker has emptied the queues."""
    worker = Worker(functions, Mirror(aws.state))
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        for each in [thread, *worker.pollers]:
            each.join()


def waiting(queue: str) -> int:
    """Messages in the queue, in flight or not."""
    sqs = boto3.client("sqs")
    names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    return sum(map(int, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values()))


def test_objects_are_ingested_mirrored_and_removed(aws: Aws, functions: Functions) -> None:
    s3: Any = boto3.client("s3")
    with running(aws, functions):
        s3.put_object(Bucket=BUCKET, Key="a b.md", Body=b"1")
        s3.put_object(Bucket=BUCKET, Key="removed.md", Body=b"2")
    with running(aws, functions):
        s3.delete_object(Bucket=BUCKET, Key="removed.md")
    assert sorted(functions.keys("ingest_document")) == ["a+b.md", "removed.md"]
    assert functions.keys("remove_document") == ["removed.md"]
    [record] = functions.called("remove_document")[-1]["Records"]
    assert record["eventSource"] == "aws:sqs"
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert waiting(INGEST) == 0

    aws.make()
    assert [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET)["Contents"]] == ["a b.md"]


def test_only_what_failed_is_delivered_again(aws: Aws, functions: Functions) -> None:
    s3: Any = boto3.client("s3")
    functions.failing = "bad"
    with running(aws, functions):
        s3.put_object(Bucket=BUCKET, Key="good.md", Body=b"1")
        s3.put_object(Bucket=BUCKET, Key="bad.md", Body=b"2")
        until(lambda: waiting(f"{INGEST}-dlq") == 1)
    assert sorted(functions.keys("ingest_document")) == ["bad.md", "bad.md", "bad.md", "good.md"]
    assert waiting(INGEST) == 0


def test_an_ended_session_is_delivered_as_the_event_itself_until_it_succeeds(aws: Aws, functions: Functions) -> None:
    functions.failing = "SessionEnded"
    entry: Any = {"Source": "octopus", "DetailType": "SessionEnded", "Detail": "{}", "EventBusName": EVENT_BUS}
    with running(aws, functions):
        boto3.client("events").put_events(Entries=[entry])
        until(lambda: len(functions.called("end_session")) == 2)
        functions.failing = ""
        until(lambda: waiting(SESSION_ENDED) == 0)
    assert [event["detail-type"] for event in functions.called("end_session")] == ["SessionEnded"] * 3


def test_the_sweep_is_called_by_the_clock(aws: Aws, functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "SWEEP_SECONDS", 0)
    with running(aws, functions):
        until(lambda: bool(functions.called("sweep")))
    assert functions.called("sweep")[0]["source"] == "aws.scheduler"
