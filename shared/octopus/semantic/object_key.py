"""Where a document lies in the bucket: ``tenant/agent/document/name``.

The tenant is percent-encoded and so can hold no slash. The name is for people who look into the bucket: it is cut to
characters that need no encoding, and nothing is ever read back from it.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote
from uuid import UUID

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LENGTH = 100


def object_key(tenant_id: str, agent_id: UUID, document_id: UUID, file_name: str) -> str:
    """The key of a new document; at most 1024 bytes for a tenant id of up to 280 characters."""
    name = _UNSAFE.sub("_", file_name).strip(".")[-_NAME_LENGTH:] or "document"
    return f"{quote(tenant_id, safe='')}/{agent_id}/{document_id}/{name}"


def document_path(key: str) -> str:
    """The ids in a key, for the log: without the name, which is content."""
    return "/".join(key.split("/")[:3])[:400]


def tenant_of(key: str) -> str | None:
    """The tenant that a key claims to belong to, to be checked against the row of the whole key."""
    parts = key.split("/")
    if len(parts) != 4 or not parts[0] or "\x00" in key:
        return None
    try:
        return unquote(parts[0], errors="strict")
    except UnicodeDecodeError:
        return None
