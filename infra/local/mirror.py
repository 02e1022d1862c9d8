"""Copies of the bucket's objects on disk, for moto forgets everything when it ends."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from infra.local.environment import BUCKET


class Mirror:
    """One file with an object's bytes and one with what else it has, both named by a hash of its key."""

    def __init__(self, state: Path) -> None:
        self._directory = state / "objects"
        self._s3: Any = boto3.client("s3")

    def save(self, key: str) -> None:
        """Copy the object to disk. One that is gone by now is no error: its removal is on the way."""
        try:
            found = self._s3.get_object(Bucket=BUCKET, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return
            raise
        about = {"key": key, "type": found["ContentType"], "metadata": found["Metadata"]}
        self._directory.mkdir(parents=True, exist_ok=True)
        body = self._path(key)
        body.write_bytes(found["Body"].read())
        # Last and at once: an object is in the mirror when this file is.
        unfinished = body.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(about))
        unfinished.rename(body.with_suffix(".json"))

    def remove(self, key: str) -> None:
        """Forget the object."""
        body = self._path(key)
        body.with_suffix(".json").unlink(missing_ok=True)
        body.unlink(missing_ok=True)

    def restore(self) -> int:
        """Put every object back, oldest first, and return their number. Each sends its event anew."""
        entries = sorted(self._directory.glob("*.json"), key=lambda entry: entry.stat().st_mtime)
        for entry in entries:
            about = json.loads(entry.read_text())
            self._s3.put_object(
                Bucket=BUCKET,
                Key=about["key"],
                Body=entry.with_suffix(".body").read_bytes(),
                ContentType=about["type"],
                Metadata=about["metadata"],
            )
        return len(entries)

    def _path(self, key: str) -> Path:
        return self._directory / f"{hashlib.sha256(key.encode()).hexdigest()}.body"
