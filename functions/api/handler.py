"""Lambda entry point of the API."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.api.app import resolve
from octopus.cloud.runtime import run
from octopus.cloud.telemetry import logger, tracer


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP, clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer an API Gateway HTTP API v2 request."""
    return run(resolve(event, context))
