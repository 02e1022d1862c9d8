"""Builders of what working memory is assembled from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from octopus.agents.types import Agent
from octopus.conversations.types import Block, Message, Role, text_block
from octopus.episodic.types import RecalledEpisode
from octopus.memory_config import MemoryConfig
from octopus.procedural.types import Procedure, ProcedureMatch, Step
from octopus.recall import Score
from octopus.semantic.types import RecalledChunk
from octopus.working.types import content_tokens

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
NAMESPACE = UUID(int=1)


def words(text: str) -> int:
    """A token counter that a person can check."""
    return len(text.split())


def an_agent(system_prompt: str = "You are Aria.", **config: Any) -> Agent:
    return Agent(uuid5(NAMESPACE, "agent"), "aria", "", system_prompt, None, MemoryConfig(**config), 1, NOW, NOW)


def a_message(seq: int, turn: int, role: Role, content: list[Block] | str) -> Message:
    blocks = [text_block(content)] if isinstance(content, str) else content
    turn_id = uuid5(NAMESPACE, f"turn {turn}")
    return Message(seq, uuid5(NAMESPACE, f"m{seq}"), turn_id, role, blocks, content_tokens(words, blocks), None, NOW)


def a_log(turns: Sequence[tuple[str, int, str]]) -> list[Message]:
    """Messages of turns (question, number of tool calls, answer)."""
    messages: list[Message] = []
    for number, (question, calls, answer) in enumerate(turns):
        messages.append(a_message(len(messages) + 1, number, "user", question))
        if calls:
            ids = [f"call-{number}-{call}" for call in range(calls)]
            uses = [{"type": "tool_use", "id": i, "name": "echo", "input": {}} for i in ids]
            results = [{"type": "tool_result", "tool_use_id": i, "content": "ok", "is_error": False} for i in ids]
            messages.append(a_message(len(messages) + 1, number, "assistant", uses))
            messages.append(a_message(len(messages) + 1, number, "tool", results))
        if answer:
            messages.append(a_message(len(messages) + 1, number, "assistant", answer))
    return messages


def a_chunk(rank: int, content: str, file_name: str = "handbook.md", cosine: float = 0.5) -> RecalledChunk:
    document_id = uuid5(NAMESPACE, file_name)
    return RecalledChunk(document_id, rank, file_name, None, None, content, words(content), Score(rank, cosine, 0.8))


def an_episode(rank: int, summary: str, *facts: str, day: int = 1) -> RecalledEpisode:
    return RecalledEpisode(
        uuid5(NAMESPACE, f"episode {rank}"),
        uuid5(NAMESPACE, f"conversation {rank}"),
        NOW.replace(day=day),
        summary,
        list(facts),
        False,
        Score(rank, 0.5, 0.8),
    )


def a_procedure(name: str, description: str, *steps: Step) -> ProcedureMatch:
    procedure = Procedure(
        procedure_id=uuid5(NAMESPACE, name),
        agent_id=None,
        name=name,
        description=description,
        trigger_kind="regex",
        trigger_pattern=name,
        example_phrases=[],
        priority=0,
        steps=list(steps),
        status="approved",
        is_active=True,
        version=1,
        created_by="admin",
        source_conversation_id=None,
        reviewed_by=None,
        reviewed_at=None,
        review_note=None,
        created_at=NOW,
        updated_at=NOW,
    )
    return ProcedureMatch(procedure, "pattern", Score(1))
