"""Forget a document whose object is gone."""

from __future__ import annotations

from typing import Literal

from octopus.semantic.news import DocumentNews
from octopus.semantic.object_key import tenant_of
from octopus.semantic.ports import KnowledgeStore, Objects

Outcome = Literal["removed", "kept", "refused"]


class RemoveDocument:
    """Deletes chunks and vectors; the document stays, with status ``deleted``, and comes back with its object."""

    def __init__(self, store: KnowledgeStore, objects: Objects, news: DocumentNews) -> None:
        self._store = store
        self._objects = objects
        self._news = news

    async def remove(self, object_key: str, sequencer: str | None = None) -> Outcome:
        """`kept`: there is an object under the key again, or an ingestion has claimed the document since.

        The object is looked for twice. Before the claim, so that a late event does not disturb an ingestion; after
        it, so that an object put in between is not forgotten: its own event comes later and claims anew.
        """
        tenant_id = tenant_of(object_key)
        if tenant_id is None:
            return "refused"
        if await self._objects.exists(object_key):
            return "kept"
        claim = await self._store.claim(tenant_id, object_key, sequencer)
        if claim is None:
            return "refused"
        if await self._objects.exists(object_key):
            return "kept"
        if not await self._store.withdraw(claim):
            return "kept"
        await self._news.tell(claim, "DocumentDeleted")
        return "removed"
