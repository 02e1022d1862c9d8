"""Errors on the wire: problem documents of RFC 9457, the same for both HTTP functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from octopus.errors import OctopusError

CONTENT_TYPE = "application/problem+json"


def problem(error: OctopusError) -> dict[str, Any]:
    """The problem document. `retryable` is an extension member: the same request may succeed later."""
    kind = "".join(f"-{c.lower()}" if c.isupper() else c for c in type(error).__name__).lstrip("-")
    return {
        "type": f"urn:octopus:problem:{kind}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "retryable": error.retryable,
        **error.extra,
    }


def problem_headers(error: OctopusError) -> Mapping[str, str]:
    """Headers beside the document: when to retry, and that a bearer token is wanted."""
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return headers
