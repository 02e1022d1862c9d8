"""Lambda entry point of the end of a session."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from octopus.cloud.runtime import run
from octopus.cloud.telemetry import logger, metrics, tracer
from octopus.cloud.wiring import services
from octopus.conversations.sessions import SessionEnded


@logger.inject_lambda_context(correlation_id_path=correlation_paths.EVENT_BRIDGE, clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str]:
    """Make the episode of the session that the event names, then learn from it how the work was done.

    What is raised has Lambda deliver the event again; both steps are done once, however often it comes.
    """
    ended = SessionEnded.model_validate(event["detail"])
    logger.append_keys(tenant_id=ended.tenant_id, conversation_id=str(ended.conversation_id))
    metrics.add_metric("SessionEnded", MetricUnit.Count, 1)  # first: Powertools warns of a failure without a metric
    run(services().follow_space())
    outcome = run(services().episode_writer.remember(ended, context.aws_request_id))
    logger.info("session remembered", extra={"outcome": outcome})
    metrics.add_metric(f"Session_{outcome}", MetricUnit.Count, 1)
    captured = run(services().procedure_capture.capture(ended.tenant_id, ended.conversation_id))
    if captured:
        logger.info("session judged for a procedure", extra={"captured": captured})
        metrics.add_metric(f"Capture_{captured.replace(' ', '_')}", MetricUnit.Count, 1)
    return {"outcome": outcome}
