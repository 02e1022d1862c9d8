"""Amazon EventBridge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from octopus.errors import Unavailable

SOURCE = "octopus"


class EventBridgeBus:
    """Implements `octopus.events.EventBus`."""

    def __init__(self, bus_name: str) -> None:
        self._bus_name = bus_name

    @cached_property
    def _client(self) -> Any:
        quick = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "max_attempts": 3})
        return boto3.client("events", config=quick)

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        entry = {
            "EventBusName": self._bus_name,
            "Source": SOURCE,
            "DetailType": detail_type,
            "Detail": json.dumps(dict(detail)),
        }
        try:
            result = await asyncio.to_thread(lambda: self._client.put_events(Entries=[entry]))
        except (BotoCoreError, ClientError) as exc:
            raise Unavailable("The event bus does not answer; retry.", retry_after=2) from exc
        # EventBridge answers 200 even when it has refused entries.
        if result["FailedEntryCount"]:
            raise Unavailable(f"The event bus refused the event: {result['Entries'][0]['ErrorCode']}.", retry_after=2)
