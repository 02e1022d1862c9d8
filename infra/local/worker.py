"""Deliver events to the functions as Lambda's pollers do: `python -m infra.local.worker`.

One thread waits at each queue; the main thread calls the handlers one after another, for they share one event
loop. When told to stop it works on until the queues are quiet: what is left in them dies with moto.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.environment import ACCOUNT, INGEST, REGION, REMOVE, SESSION_ENDED
from infra.local.lambda_runtime import initialize, invoke
from infra.local.mirror import Mirror

SWEEP_SECONDS = 60.0
QUIET_SECONDS = 0.3  # without a message, after which a stopping worker ends
STOPPING_SECONDS = 8.0  # at most, from the request to the end
WAIT_SECONDS = 20  # of one long poll
RETRY_SECONDS = 5  # until a message that failed is delivered again

Event = dict[str, Any]
Invoke = Callable[[str, Event], Any]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A queue and the function behind it, which takes SQS batches or, one by one, the events inside the
    messages."""

    queue: str
    function: str
    batch: bool


SOURCES = (
    Source(INGEST, "ingest_document", batch=True),
    Source(REMOVE, "remove_document", batch=True),
    Source(SESSION_ENDED, "end_session", batch=False),
)


class Worker:
    def __init__(self, call: Invoke, mirror: Mirror) -> None:
        self._call = call
        self._mirror = mirror
        self._sqs: Any = boto3.client("sqs")
        self._urls = {source: self._sqs.get_queue_url(QueueName=source.queue)["QueueUrl"] for source in SOURCES}
        self._received: queue.Queue[tuple[Source, list[Event]]] = queue.Queue(maxsize=1)
        self._stopping_since: float | None = None
        self._ended = False
        self.pollers = [threading.Thread(target=self._poll, args=(source,), daemon=True) for source in SOURCES]

    def stop(self, *_: object) -> None:
        """Finish what the queues hold, then return from `run`. A signal handler."""
        self._stopping_since = time.monotonic()

    def run(self) -> None:
        """Deliver until told to stop. The pollers end with the process, or with the polls they are at."""
        for poller in self.pollers:
            poller.start()
        next_sweep = time.monotonic() + SWEEP_SECONDS
        while self._stopping_since is None or time.monotonic() < self._stopping_since + STOPPING_SECONDS:
            try:
                self._deliver(*self._received.get(timeout=QUIET_SECONDS))
            except queue.Empty:
                if self._stopping_since is not None:
                    break
            if time.monotonic() > next_sweep:
                self._succeeds("sweep", scheduled_event())
                next_sweep = time.monotonic() + SWEEP_SECONDS
        self._ended = True

    def _poll(self, source: Source) -> None:
        most = 10 if source.batch else 1
        while not self._ended:
            try:
                answer = self._sqs.receive_message(
                    QueueUrl=self._urls[source],
                    MaxNumberOfMessages=most,
                    WaitTimeSeconds=WAIT_SECONDS,
                    AttributeNames=["All"],
                )
            except (BotoCoreError, ClientError) as error:
                logger.warning("%s cannot be read: %s", source.queue, error)
                time.sleep(1)
                continue
            if messages := answer.get("Messages"):
                self._received.put((source, messages))

    def _deliver(self, source: Source, messages: list[Event]) -> None:
        if source.batch:
            for message in messages:
                self._keep_mirror(json.loads(message["Body"]))
            failed = self._failed_of_batch(source, messages)
        else:
            failed = {
                message["MessageId"]
                for message in messages
                if not self._succeeds(source.function, json.loads(message["Body"]))
            }
        for message in messages:
            handle = {"QueueUrl": self._urls[source], "ReceiptHandle": message["ReceiptHandle"]}
            if message["MessageId"] in failed:
                self._sqs.change_message_visibility(**handle, VisibilityTimeout=RETRY_SECONDS)
            else:
                self._sqs.delete_message(**handle)

    def _failed_of_batch(self, source: Source, messages: list[Event]) -> set[str]:
        """Ids of the messages that the function reports as failed: all of them if it fails itself."""
        try:
            result = self._call(source.function, batch_event(source.queue, messages)) or {}
        except Exception:
            logger.exception("%s failed", source.function)
            return {message["MessageId"] for message in messages}
        return {failure["itemIdentifier"] for failure in result.get("batchItemFailures", [])}

    def _succeeds(self, function: str, event: Event) -> bool:
        try:
            self._call(function, event)
        except Exception:
            logger.exception("%s failed", function)
            return False
        return True

    def _keep_mirror(self, notification: Event) -> None:
        for name, key in _changes(notification):
            if name.startswith("ObjectCreated:"):
                self._mirror.save(key)
            else:
                self._mirror.remove(key)


def batch_event(queue_name: str, messages: list[Event]) -> Event:
    """The event with which Lambda's SQS poller calls a function."""
    return {
        "Records": [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message.get("Attributes", {}),
                "messageAttributes": {},
                "md5OfBody": message["MD5OfBody"],
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue_name}",
                "awsRegion": REGION,
            }
            for message in messages
        ]
    }


def scheduled_event() -> Event:
    """The event that EventBridge Scheduler sends when a schedule sets no input of its own."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": ACCOUNT,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/octopus-sweep"],
        "detail": "{}",
    }


def _changes(notification: Event) -> Iterator[tuple[str, str]]:
    """Event name and key of each object in an S3 notification; none for the one with which S3 tests a
    queue."""
    for record in notification.get("Records", []):
        yield record["eventName"], unquote_plus(record["s3"]["object"]["key"])


def main() -> None:
    logging.basicConfig(format="%(asctime)s %(message)s")
    for function in (*(source.function for source in SOURCES), "sweep"):
        initialize(function)
    worker = Worker(invoke, Mirror(Path(os.environ["OCTOPUS_LOCAL_STATE"])))
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()


if __name__ == "__main__":
    main()
