"""Changes of the embedding model in PostgreSQL, under the role octopus_sweep."""

from __future__ import annotations

from octopus.cloud.database import PLATFORM, Database, Transaction
from octopus.cloud.queries import load_queries
from octopus.embeddings.ports import Beginning
from octopus.embeddings.types import Item, Progress, Space

_SQL = load_queries(__package__)


class PostgresChangeStore:
    """Implements `octopus.embeddings.ports.ChangeStore`. It sees which items there are, and nothing of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def progress(self) -> Progress:
        rows = await self._database.all(PLATFORM, _SQL["spaces"])
        by_state = {row["state"]: row for row in rows}
        current, coming = by_state.get("current"), by_state.get("coming")
        return Progress(
            current=current["model"] if current else None,
            coming=coming["model"] if coming else None,
            total=coming["total"] if coming else {},
            left=coming["left"] if coming else {},
            dropping={
                row["model"]: sum(row["left"].values()) for row in rows if row["state"] in ("leaving", "dropping")
            },
        )

    async def begin(self, model: str, dimensions: int) -> Beginning:
        async with self._database.transaction(PLATFORM) as tx:
            current = await tx.one(_SQL["hold_current"])
            if current is None:
                return "empty"
            if await tx.one(_SQL["coming"]):
                return "busy"
            space = await tx.one(_SQL["begin"], {"model": model, "dimensions": dimensions})
            if space is None:
                return "current" if current["model"] == model else "dropping"
            await _refill(tx, space["space_id"])
        return "begun"

    async def cancel(self) -> bool:
        async with self._database.transaction(PLATFORM) as tx:
            await tx.one(_SQL["hold_current"])
            space = await tx.one(_SQL["cancel"])
            if space is None:
                return False
            await tx.run(_SQL["clear_backlog"], space)
        return True

    async def coming(self) -> Space | None:
        row = await self._database.one(PLATFORM, _SQL["coming"])
        return Space(**row) if row else None

    async def take(self, space_id: int, limit: int, lease_s: float) -> list[Item]:
        params = {"space_id": space_id, "limit": limit, "lease_s": lease_s}
        return [Item(**row) for row in await self._database.all(PLATFORM, _SQL["take"], params)]

    async def settle(self, space_id: int, item: Item, *, done: bool) -> None:
        params = {
            "space_id": space_id,
            "memory": item.memory,
            "tenant_id": item.tenant_id,
            "item_id": item.item_id,
            "stamp": item.stamp,
        }
        async with self._database.transaction(PLATFORM) as tx:
            if not (done and await tx.run(_SQL["finish"], params)):
                await tx.run(_SQL["release"], params)

    async def switch(self, space_id: int) -> bool:
        params = {"space_id": space_id}
        async with self._database.transaction(PLATFORM) as tx:
            await tx.one(_SQL["hold_current"])
            backlog = await tx.one(_SQL["has_backlog"], params)
            coming = await tx.one(_SQL["coming"])
            assert backlog is not None  # exists() is a row
            if backlog["found"] or coming is None or coming["space_id"] != space_id:
                return False
            await tx.run(_SQL["leave_current"])
            await tx.run(_SQL["become_current"], params)
        return True

    async def left_for(self, seconds: float) -> list[Space]:
        async with self._database.transaction(PLATFORM) as tx:
            for space in await tx.all(_SQL["leave_for_good"], {"seconds": seconds}):
                await _refill(tx, space["space_id"])
            return [Space(**row) for row in await tx.all(_SQL["dropping"])]

    async def forget(self, space_id: int) -> bool:
        return await self._database.run(PLATFORM, _SQL["forget"], {"space_id": space_id}) == 1


async def _refill(tx: Transaction, space_id: int) -> None:
    params = {"space_id": space_id}
    await tx.run(_SQL["clear_backlog"], params)
    await tx.run(_SQL["fill_backlog"], params)
    await tx.run(_SQL["count_backlog"], params)
