"""What working memory keeps in PostgreSQL (the token factor of each model), and what its inspector reads there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from octopus.cloud.database import PLATFORM, Database, Row
from octopus.cloud.queries import load_queries
from octopus.conversations.types import Message, Turn, text_of
from octopus.procedural.types import Step
from octopus.semantic.types import chunk_source
from octopus.working.inspector import Content, Contents
from octopus.working.sections import procedure_text
from octopus.working.selection import content_hash, version_hash
from octopus.working.trace import TurnTrace

_SQL = load_queries(__package__)
_STEPS = TypeAdapter(list[Step])


class PostgresFactorStore:
    """Implements `octopus.working.token_factor.FactorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def correct_factor(self, model: str, before: float, after: float) -> None:
        await self._database.run(PLATFORM, _SQL["correct_factor"], {"model": model, "before": before, "after": after})


class PostgresInspectorStore:
    """Implements `octopus.working.inspector.InspectorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_turn(self, tenant_id: str, conversation_id: UUID, turn_id: UUID) -> Turn | None:
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "turn_id": turn_id}
        row = await self._database.one(tenant_id, _SQL["get_turn"], params)
        return Turn(**row) if row else None

    async def contents_now(self, tenant_id: str, turn: Turn, trace: TurnTrace) -> Contents:
        chunks = [item_id.rsplit(":", 1) for item_id in _item_ids(trace, "knowledge")]
        params: dict[str, Any] = {
            "tenant_id": tenant_id,
            "agent_id": trace.agent_id,
            "conversation_id": turn.conversation_id,
            "document_ids": [document_id for document_id, _ in chunks],
            "ordinals": [int(ordinal) for _, ordinal in chunks],
            "episode_ids": list(_item_ids(trace, "episodes")),
            "procedure_ids": list(_item_ids(trace, "procedure")),
            "first_seq": trace.pruning.first_seq,
            "last_seq": trace.pruning.last_seq,
            "user_seq": turn.user_seq,
        }
        async with self._database.transaction(tenant_id) as tx:
            names = ("agent_prompt", "chunks_now", "episodes_now", "procedures_now", "history_now")
            agent, chunks_now, episodes, procedures, history = await tx.each(*((_SQL[name], params) for name in names))
        return Contents(
            system_prompt=agent[0]["system_prompt"] if agent else None,
            agent_version=agent[0]["version"] if agent else None,
            items={
                **{row["item_id"]: _chunk(row) for row in chunks_now},
                **{row["item_id"]: _episode(row) for row in episodes},
                **{row["item_id"]: _procedure(row) for row in procedures},
            },
            messages=[Message(**row) for row in history if row["seq"] != turn.user_seq],
            message=next((text_of(row["content"]) for row in history if row["seq"] == turn.user_seq), None),
        )


def _item_ids(trace: TurnTrace, section: str) -> Iterable[str]:
    return (item.item_id for s in trace.sections if s.name == section for item in s.items)


def _chunk(row: Row) -> Content:
    source = chunk_source(row["file_name"], row["heading"], row["page"])
    return Content(source, row["content"], content_hash(row["content"]))


def _episode(row: Row) -> Content:
    return Content(f"{row['started_at']:%Y-%m-%d}", row["summary"], content_hash(row["summary"]))


def _procedure(row: Row) -> Content:
    text = procedure_text(row["name"], row["description"], _STEPS.validate_python(row["steps"]))
    return Content(row["name"], text, version_hash(row["version"]))
