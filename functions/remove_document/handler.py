"""Lambda entry point of removal."""

from __future__ import annotations

from logging import Logger
from typing import Any, cast

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from octopus.cloud.runtime import run
from octopus.cloud.telemetry import logger, tracer
from octopus.cloud.wiring import services
from octopus.semantic.notification import read_message
from octopus.semantic.object_key import document_path

# What fails is delivered again, and in the end lies in the dead-letter queue: the invocation itself never fails.
_processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False, logger=cast("Logger", logger))


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Forget what S3 has deleted according to a batch of SQS messages; report those to be delivered again."""
    return process_partial_response(event, _remove, _processor, context)


def _remove(record: SQSRecord) -> None:
    message = read_message(record.body)
    for event in message if isinstance(message, list) else []:
        if event.kind == "removed":
            outcome = run(services().remove_document.remove(event.key, event.sequencer))
            logger.info("removal", extra={"document": document_path(event.key), "outcome": outcome})
