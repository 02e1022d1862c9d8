"""A turn, as operators see it: subsegments, counters and one line per turn. Never content."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from aws_lambda_powertools.metrics import MetricUnit

from octopus.cloud.telemetry import logger, metrics, tracer
from octopus.working.trace import StoreReport, TurnTrace


class PowertoolsObserver:
    """Implements `octopus.observer.Observer`."""

    @asynccontextmanager
    async def span(self, name: str) -> AsyncIterator[None]:
        # The async form: concurrent spans are siblings under the turn, whatever order they end in.
        async with tracer.provider.in_subsegment_async(name=f"## {name}"):
            yield

    def store_degraded(self, report: StoreReport, error: BaseException) -> None:
        metrics.add_metric("DegradedReads", MetricUnit.Count, 1)
        logger.warning(
            "memory degraded",
            extra={"store": report.name, "why": report.degraded, "ms": report.ms, "error": type(error).__name__},
        )

    def turn_failed(self, tenant_id: str, turn_id: UUID, error: BaseException) -> None:
        metrics.add_metric("FailedTurns", MetricUnit.Count, 1)
        # Where it happened, not what it said: a driver's message may quote what was being written.
        frames = [
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ]
        logger.error(
            "turn failed",
            extra={"tenant_id": tenant_id, "turn_id": str(turn_id), "error": type(error).__name__, "frames": frames},
        )

    def turn_ended(self, tenant_id: str, trace: TurnTrace) -> None:
        metrics.add_metric("Turns", MetricUnit.Count, 1)
        metrics.add_metric("TurnTime", MetricUnit.Milliseconds, trace.timings.elapsed_ms)
        if trace.timings.first_token_ms is not None:
            metrics.add_metric("TimeToFirstToken", MetricUnit.Milliseconds, trace.timings.first_token_ms)
        for store in trace.stores:
            if store.enabled:
                metrics.add_metric(f"ReadPhase.{store.name}", MetricUnit.Milliseconds, store.ms)
        for section in trace.sections:
            metrics.add_metric(f"Tokens.{section.name}", MetricUnit.Count, section.tokens)
        total = trace.usage.total_input_tokens
        if total:
            metrics.add_metric("CacheShare", MetricUnit.Percent, 100 * trace.usage.cache_read_tokens / total)
        logger.info(
            "turn",
            extra={
                "tenant_id": tenant_id,
                "turn_id": str(trace.turn_id),
                "conversation_id": str(trace.conversation_id),
                "agent_id": str(trace.agent_id),
                "model": trace.model,
                "stop_reason": trace.stop_reason,
                "tokens": {section.name: section.tokens for section in trace.sections},
                "stores": {store.name: store.degraded or store.ms for store in trace.stores},
                "input_tokens": total,
                "output_tokens": trace.usage.output_tokens,
                "first_token_ms": trace.timings.first_token_ms,
                "elapsed_ms": trace.timings.elapsed_ms,
            },
        )
