"""The port through which Octopus tells the rest of the system that something has happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class EventBus(Protocol):
    """A bus of events. Delivery is at least once and in no order; details carry ids and numbers, never content."""

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Raises `octopus.errors.Unavailable` when the bus has not taken the event."""
        ...
