"""Lambda entry point of a change of the embedding model: a share of it at each tick, and what operators order."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, Literal, get_args

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel, ValidationError

from octopus.cloud.runtime import run
from octopus.cloud.telemetry import logger, metrics, tracer
from octopus.cloud.wiring import services
from octopus.embeddings.types import MemoryName, Progress
from octopus.errors import Conflict, InvalidInput, NotFound
from octopus.problem import problem
from octopus.settings import Embeddings

_RESERVE_S = 30  # kept of the function's time to finish a batch or an episode


class Order(BaseModel):
    """What an operator's event asks for; the schedule's says nothing."""

    action: Literal["work", "status", "change", "cancel"] = "work"
    embeddings: Embeddings | None = None


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """The progress of the change, or the problem with what was ordered."""
    until = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - _RESERVE_S
    try:
        progress = run(_obey(Order.model_validate(event), until))
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        return problem(InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}."))
    except (Conflict, InvalidInput, NotFound) as refusal:
        return problem(refusal)
    _publish(progress)
    return asdict(progress)


def _publish(progress: Progress) -> None:
    """Metrics cost by the month: there are some only in months with a change."""
    if progress.coming or progress.dropping:
        logger.info("the embedding model is being changed", extra={"progress": asdict(progress)})
        for memory in get_args(MemoryName):
            metrics.add_metric(f"Reembed_{memory}_left", MetricUnit.Count, progress.left.get(memory, 0))
        metrics.flush_metrics()


async def _obey(order: Order, until: float) -> Progress:
    change = services().embedding_change
    if order.action == "status":
        return await change.progress()
    if order.action == "cancel":
        return await change.cancel()
    if order.action == "change":
        if order.embeddings is None:
            raise InvalidInput("embeddings: say which embedder to change to.", field="embeddings")
        return await change.start(services().embedder_named(order.embeddings))
    return await change.work(until)
