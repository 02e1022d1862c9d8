"""Tell the rest of the system how a document fares."""

from __future__ import annotations

from typing import Literal

from octopus.events import EventBus
from octopus.semantic.ports import KnowledgeStore
from octopus.semantic.types import Claim

News = Literal["DocumentIndexed", "DocumentFailed", "DocumentDeleted"]


class DocumentNews:
    """Events with ids and no content. What was not told for a crash is told by the next attempt: at least once."""

    def __init__(self, bus: EventBus, store: KnowledgeStore) -> None:
        self._bus = bus
        self._store = store

    async def tell(self, claim: Claim, news: News) -> None:
        """Raises `Unavailable` when the bus has not taken it."""
        ids = {"document_id": str(claim.document_id), "agent_id": str(claim.agent_id), "tenant_id": claim.tenant_id}
        await self._bus.publish(news, ids)
        await self._store.announced(claim)
