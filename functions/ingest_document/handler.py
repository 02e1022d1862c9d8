"""Lambda entry point of ingestion."""

from __future__ import annotations

import time
from logging import Logger
from typing import Any, cast

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from octopus.cloud.runtime import run
from octopus.cloud.telemetry import logger, tracer
from octopus.cloud.wiring import services
from octopus.errors import Unavailable
from octopus.semantic.notification import read_message
from octopus.semantic.object_key import document_path
from octopus.semantic.types import Lane

_RESERVE_S = 15  # kept of the function's time to finish a batch of chunks and hand over the rest

# What fails is delivered again, and in the end lies in the dead-letter queue: the invocation itself never fails.
_processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False, logger=cast("Logger", logger))


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Index what S3 announces in a batch of SQS messages; report those to be delivered again."""
    return process_partial_response(event, _ingest, _processor, context)


def _ingest(record: SQSRecord, lambda_context: LambdaContext) -> None:
    try:
        _index(record, lambda_context)
    except Unavailable:
        run(services().index_queue.retry_soon(record.receipt_handle, int(record.attributes.approximate_receive_count)))
        raise


def _index(record: SQSRecord, lambda_context: LambdaContext) -> None:
    until = time.monotonic() + lambda_context.get_remaining_time_in_millis() / 1000 - _RESERVE_S
    message = read_message(record.body)
    run(services().follow_space())
    if isinstance(message, Lane):
        run(services().reindex_lane.step(message, until))
        return
    for event in message:
        if event.kind == "created":
            ingest = services().ingest_document.ingest
            outcome = run(ingest(event.key, event.sequencer, anew=event.anew, until=until))
            logger.info("ingestion", extra={"document": document_path(event.key), "outcome": outcome})
