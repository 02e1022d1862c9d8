"""What Python's runtime client and Powertools' decorators do in other functions, for an app behind Lambda Web Adapter.

The adapter passes the Lambda context on as JSON in the header ``x-amzn-lambda-context`` and the function URL's request
as ``x-amzn-request-context``; it overwrites whatever a caller sends under these names. Where there is no such header,
as on a developer's machine, this does nothing.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from octopus.cloud.telemetry import logger, metrics, tracer
from octopus.settings import continue_trace

LAMBDA_CONTEXT = "x-amzn-lambda-context"
REQUEST_CONTEXT = "x-amzn-request-context"


class LambdaContextMiddleware:
    """Gives each request its trace, its log keys and its metrics. Lambda sends an environment one request at a time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._cold = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if LAMBDA_CONTEXT not in headers:
            await self._app(scope, receive, send)
            return
        context = json.loads(headers[LAMBDA_CONTEXT])
        continue_trace(context.get("xray_trace_id"))
        self._name_request(context, json.loads(headers.get(REQUEST_CONTEXT, "{}")))
        try:
            # Until the last byte of the stream, and the parent of everything that the turn records.
            async with tracer.provider.in_subsegment_async(name="## chat"):
                await self._app(scope, receive, send)
        finally:
            if metrics.provider.metric_set:
                metrics.flush_metrics()

    def _name_request(self, context: dict[str, Any], request: dict[str, Any]) -> None:
        """The keys of `Logger.inject_lambda_context`."""
        function = context.get("env_config") or {}
        logger.clear_state()
        logger.append_keys(
            cold_start=self._cold,
            function_name=function.get("function_name"),
            function_memory_size=function.get("memory"),
            function_arn=context.get("invoked_function_arn"),
            function_request_id=context.get("request_id"),
        )
        logger.set_correlation_id(request.get("requestId") or context.get("request_id"))
        self._cold = False
