"""What an agent is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from octopus.memory_config import MemoryConfig


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of one tenant. `version` grows with every change."""

    agent_id: UUID
    name: str
    description: str
    system_prompt: str
    model: str | None
    memory_config: MemoryConfig
    version: int
    created_at: datetime
    updated_at: datetime
