"""Lambda entry point of the schema: a CloudFormation custom resource that succeeds when the migrations do."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.data_classes import CloudFormationCustomResourceEvent, event_source
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.migrate.response import answer
from octopus.cloud.runtime import run
from octopus.cloud.telemetry import logger, tracer
from octopus.cloud.wiring import services


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@event_source(data_class=CloudFormationCustomResourceEvent)
def handler(event: CloudFormationCustomResourceEvent, context: LambdaContext) -> dict[str, Any]:
    """Migrate on create and update; leave the schema alone on delete."""
    try:
        applied = run(_migrate(event.request_type))
    except Exception as error:
        # Whatever went wrong, CloudFormation must hear of it, or the deployment hangs until its timeout.
        answer(event, failure=error)
        raise
    logger.info("schema is up to date", extra={"applied": applied})
    answer(event)
    return {"applied": applied}


async def _migrate(request_type: str) -> list[str]:
    if request_type == "Delete":
        return []
    return await services().migrate(may_roll_back=request_type == "Update")
