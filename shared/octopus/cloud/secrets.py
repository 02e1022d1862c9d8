"""Secrets Manager."""

from __future__ import annotations

import asyncio

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from octopus.cloud.telemetry import logger
from octopus.errors import Unavailable


async def secret_string(secret_id: str) -> str:
    """The secret's text. Raises `Unavailable` when it cannot be read; the log names it."""

    def read() -> str:
        value: str = boto3.client("secretsmanager").get_secret_value(SecretId=secret_id)["SecretString"]
        return value

    try:
        return await asyncio.to_thread(read)
    except (BotoCoreError, ClientError) as exc:
        logger.error("secret cannot be read; check its name and the function's role", extra={"secret": secret_id})
        raise Unavailable("A secret that this needs cannot be read; tell an operator.") from exc
