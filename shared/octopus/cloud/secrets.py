"""Secrets Manager."""

from __future__ import annotations

import asyncio

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from octopus.errors import Unavailable


async def secret_string(secret_id: str) -> str:
    """The secret's text. Raises `Unavailable`, naming the secret, when it cannot be read."""

    def read() -> str:
        value: str = boto3.client("secretsmanager").get_secret_value(SecretId=secret_id)["SecretString"]
        return value

    try:
        return await asyncio.to_thread(read)
    except (BotoCoreError, ClientError) as exc:
        raise Unavailable(f"The secret {secret_id} cannot be read; check its name and the function's role.") from exc
