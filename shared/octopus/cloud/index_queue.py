"""The queue of documents to be indexed, on Amazon SQS: S3 writes to it, and so do requests to index anew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from octopus.errors import Unavailable
from octopus.semantic.types import Lane

_BATCH = 10  # the most that SQS takes at once
FIRST_RETRY_S, LAST_RETRY_S = 30, 1_800  # the latter is the queue's visibility timeout


class SqsIndexQueue:
    """Implements `octopus.semantic.ports.IndexQueue` and `octopus.semantic.reindex.LaneQueue`."""

    def __init__(self, queue_url: str) -> None:
        self._queue_url = queue_url

    @cached_property
    def _client(self) -> Any:
        return boto3.client("sqs", config=Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard"}))

    async def put(self, object_key: str, *, anew: bool) -> None:
        await self._put([{"ingest": object_key, "anew": anew}])

    async def put_lanes(self, lanes: Sequence[Lane]) -> None:
        await self._put([{"lane": {**asdict(lane), "job_id": str(lane.job_id)}} for lane in lanes])

    async def retry_soon(self, receipt_handle: str, received: int) -> None:
        """Have a message that was received so many times delivered again after 30 s, then 2, 8 and 30 minutes.

        A matter of courtesy: where SQS does not answer, it comes when its visibility timeout is over.
        """
        seconds = min(FIRST_RETRY_S * 4 ** (received - 1), LAST_RETRY_S)
        with suppress(BotoCoreError, ClientError):
            await asyncio.to_thread(
                self._client.change_message_visibility,
                QueueUrl=self._queue_url,
                ReceiptHandle=receipt_handle,
                VisibilityTimeout=seconds,
            )

    async def _put(self, messages: Sequence[object]) -> None:
        client = self._client
        for start in range(0, len(messages), _BATCH):
            entries = [
                {"Id": str(i), "MessageBody": json.dumps(message)}
                for i, message in enumerate(messages[start : start + _BATCH])
            ]
            await asyncio.to_thread(self._send, client, entries)

    def _send(self, client: Any, entries: list[dict[str, str]]) -> None:
        try:
            answer = client.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
        except (BotoCoreError, ClientError) as exc:
            raise Unavailable("The queue of documents does not answer; retry.", retry_after=2) from exc
        if answer.get("Failed"):
            raise Unavailable("The queue of documents did not take every message; retry.", retry_after=2)
