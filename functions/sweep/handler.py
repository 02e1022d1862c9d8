"""Lambda entry point of the sweep."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from octopus.cloud.runtime import run
from octopus.cloud.telemetry import logger, metrics, tracer
from octopus.cloud.wiring import services


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """One bounded pass over the memory of every tenant."""
    metrics.add_metric("Sweep", MetricUnit.Count, 1)  # first: Powertools warns of a failure without a metric
    swept = run(_sweep())
    logger.info("swept", extra=swept)
    for name, count in swept.items():
        metrics.add_metric(f"Swept_{name}", MetricUnit.Count, count)
    return swept


async def _sweep() -> dict[str, int]:
    return {**asdict(await services().session_sweep.run()), **asdict(await services().retention.run())}
