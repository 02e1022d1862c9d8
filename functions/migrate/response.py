"""What a custom resource answers, to the presigned address that CloudFormation gave.

Source: "Custom resource response objects" in the CloudFormation user guide.
"""

from __future__ import annotations

import json
from urllib.request import Request, urlopen

from aws_lambda_powertools.utilities.data_classes import CloudFormationCustomResourceEvent

_PHYSICAL_ID = "octopus-schema"  # one and the same for ever: another would make CloudFormation delete this one
_REASON_CHARS = 1_000  # the whole answer may have 4,096 bytes
_TIMEOUT_S = 30


def answer(event: CloudFormationCustomResourceEvent, *, failure: Exception | None = None) -> None:
    """Report success, or `failure` with its notes. Raises `urllib.error.URLError` when S3 cannot be reached."""
    body = {
        "Status": "SUCCESS" if failure is None else "FAILED",
        "PhysicalResourceId": _PHYSICAL_ID,
        "StackId": event.stack_id,
        "RequestId": event.request_id,
        "LogicalResourceId": event.logical_resource_id,
    }
    if failure is not None:
        body["Reason"] = "; ".join([f"{type(failure).__name__}: {failure}", *_notes(failure)])[:_REASON_CHARS]
    # The address is signed for an empty content type.
    request = Request(  # noqa: S310
        event.response_url, data=json.dumps(body).encode(), method="PUT", headers={"Content-Type": ""}
    )
    with urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310
        pass


def _notes(error: Exception) -> list[str]:
    return list(getattr(error, "__notes__", []))
