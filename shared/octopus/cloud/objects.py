"""Amazon S3."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from octopus.errors import DocumentRejected, Unavailable
from octopus.semantic.types import StoredObject, Upload

T = TypeVar("T")

_PIECE = 1024 * 1024
_UPLOAD_SECONDS = 3600
_GONE = {"404", "NoSuchKey", "NotFound"}


class S3Objects:
    """Implements `octopus.semantic.ports.Objects` on one bucket."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    @cached_property
    def _client(self) -> Any:
        return boto3.client("s3", config=Config(connect_timeout=3, read_timeout=20, retries={"mode": "standard"}))

    async def upload_form(self, key: str, media_type: str, max_bytes: int) -> Upload:
        form = self._client.generate_presigned_post(
            self._bucket,
            key,
            Fields={"Content-Type": media_type},
            Conditions=[{"Content-Type": media_type}, ["content-length-range", 1, max_bytes]],
            ExpiresIn=_UPLOAD_SECONDS,
        )
        return Upload(form["url"], form["fields"])

    async def exists(self, key: str) -> bool:
        found = await self._call(lambda client: client.head_object(Bucket=self._bucket, Key=key))
        return found is not None

    async def download(self, key: str, to: Path, max_bytes: int) -> StoredObject | None:
        def read(client: Any) -> StoredObject:
            found = client.get_object(Bucket=self._bucket, Key=key)
            with closing(found["Body"]) as body, to.open("wb") as file:
                size: int = found["ContentLength"]
                if size > max_bytes:
                    raise DocumentRejected(f"The file has {size} bytes; the limit is {max_bytes}. Split it.")
                digest = hashlib.sha256()
                for piece in body.iter_chunks(_PIECE):
                    digest.update(piece)
                    file.write(piece)
            return StoredObject(digest.hexdigest(), size, found.get("VersionId"))

        return await self._call(read)

    async def delete(self, key: str) -> None:
        await self._call(lambda client: client.delete_object(Bucket=self._bucket, Key=key))

    async def _call(self, operation: Callable[[Any], T]) -> T | None:
        """What the operation returns; None when there is no such object."""
        try:
            return await asyncio.to_thread(operation, self._client)
        except ClientError as exc:
            if exc.response["Error"]["Code"] in _GONE:
                return None
            raise Unavailable("The bucket refuses; check its name and the function's role.") from exc
        except BotoCoreError as exc:
            raise Unavailable("The bucket does not answer; retry.", retry_after=2) from exc
