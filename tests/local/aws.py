"""moto with the resources of the stack, as tests see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx2

ORIGIN = "http://127.0.0.1:8080"


@dataclass(frozen=True)
class Aws:
    endpoint: str
    state: Path

    def make(self) -> None:
        """Forget everything and make the resources, as a start of the stack does."""
        httpx2.post(f"{self.endpoint}/moto-api/reset")
        environment = {**os.environ, "ANTHROPIC_API_KEY": "the key", "OCTOPUS_LOCAL_ADDRESS": ORIGIN}
        environment["OCTOPUS_LOCAL_STATE"] = str(self.state)
        subprocess.run([sys.executable, "-m", "infra.local.aws"], env=environment, check=True)

    def received(self, queue: str) -> list[Any]:
        """The bodies of the messages in the queue now, less the one with which S3 tests a new
        notification."""
        sqs = boto3.client("sqs")
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        bodies = [json.loads(message["Body"]) for message in found]
        return [body for body in bodies if body.get("Event") != "s3:TestEvent"]
