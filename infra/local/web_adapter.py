"""What Lambda Web Adapter makes of a function URL's event: an HTTP request with the contexts as headers.

The adapter itself is a binary in a layer that cannot be had without an AWS account. This follows `fetch_response` of
its version 1.1.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

FUNCTION_ARN = "arn:aws:lambda:us-east-1:123456789012:function:octopus-ChatFunction:live"
TIMEOUT_S = 60.0


@contextmanager
def forward(event: dict[str, Any], app_url: str) -> Iterator[httpx2.Response]:
    """Send the event's request to the app, and give its answer as it streams."""
    context = event["requestContext"]
    headers = {name: value for name, value in event["headers"].items() if name != "content-length"}
    headers["x-amzn-request-context"] = json.dumps(context)
    headers["x-amzn-lambda-context"] = json.dumps(_lambda_context(event))
    body = event.get("body", "")
    content = b64decode(body) if event.get("isBase64Encoded") else body.encode()
    url = f"{app_url}{event['rawPath']}" + (f"?{event['rawQueryString']}" if event["rawQueryString"] else "")
    with (
        httpx2.Client(timeout=TIMEOUT_S, trust_env=False) as client,
        client.stream(context["http"]["method"], url, headers=headers, content=content) as answer,
    ):
        yield answer


def _lambda_context(event: dict[str, Any]) -> dict[str, Any]:
    """The members of `lambda_runtime::Context`, which the adapter serializes."""
    return {
        "request_id": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
        "deadline": int((time.time() + TIMEOUT_S) * 1000),
        "invoked_function_arn": FUNCTION_ARN,
        "xray_trace_id": event["headers"].get("x-amzn-trace-id"),
        "client_context": None,
        "identity": None,
        "env_config": {
            "function_name": "octopus-ChatFunction",
            "memory": 1769,
            "version": "$LATEST",
            "log_stream": "2026/11/20/[1]ab831cef03e94457a94b6efcbe22406a",
            "log_group": "/octopus/octopus-dev/chat",
        },
    }
