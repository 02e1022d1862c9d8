"""Memory configuration of an agent: what is recalled, how much of it, and how history is pruned.

Stored as the difference from the defaults, so that an improved default reaches every agent that never chose.
A change applies on the next turn, running conversations included.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Score = Annotated[float, Field(ge=0.0, le=1.0)]
AgentId = Annotated[str, AfterValidator(lambda text: str(UUID(text)))]

# History is cut at multiples of a share of the budget. A cut frees up to a quarter of it; with an eighth, input costs
# 1.4 times as much (`make bench-cache`).
STRIDES_PER_BUDGET = 4


class MemoryConfig(BaseModel):
    """Every property with its default; out of range is refused with the field's name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_working_memory_tokens: int = Field(default=150_000, ge=1_000, le=1_000_000)
    output_reserve_tokens: int = Field(default=4_096, ge=256, le=128_000)
    reserved_for_current: int = Field(default=500, ge=0, le=100_000)
    pruning_strategy: Literal["fifo", "sliding_window", "summarize"] = "fifo"
    sliding_window_turns: int = Field(default=10, ge=1, le=1_000)
    min_history_turns: int = Field(default=3, ge=0, le=100)
    context_layout: Literal["documented", "cache"] = "documented"

    episodic_enabled: bool = True
    episodic_recall_mode: Literal["semantic", "recency", "both"] = "semantic"
    episodic_top_k: int = Field(default=3, ge=1, le=50)
    episodic_min_score: Score = 0.65
    episodic_max_tokens: int = Field(default=1_000, ge=50, le=100_000)
    session_idle_minutes: int = Field(default=30, ge=1, le=10_080)
    session_max_hours: int = Field(default=8, ge=1, le=168)
    episodic_retention_days: int = Field(default=90, ge=0, le=36_500)
    episodic_archive_days: int = Field(default=365, ge=0, le=36_500)
    pii_redaction: bool = False

    semantic_enabled: bool = True
    semantic_top_k: int = Field(default=5, ge=1, le=50)
    semantic_min_score: Score = 0.7
    semantic_context_max_tokens: int = Field(default=2_000, ge=50, le=100_000)
    semantic_search: Literal["vector", "hybrid"] = "hybrid"
    # Ids of other agents of the tenant whose documents this one recalls as well.
    semantic_shared_agents: tuple[AgentId, ...] = Field(default=(), max_length=20)

    procedural_enabled: bool = True
    procedural_embedding_match: bool = True
    procedural_min_score: Score = 0.80
    procedural_learning: bool = False

    @model_validator(mode="after")
    def _reserves_fit(self) -> Self:
        reserved = self.output_reserve_tokens + self.reserved_for_current
        if reserved >= self.max_working_memory_tokens:
            raise ValueError(
                f"output_reserve_tokens + reserved_for_current ({reserved}) must be below "
                f"max_working_memory_tokens ({self.max_working_memory_tokens})"
            )
        return self

    @property
    def input_budget(self) -> int:
        """Tokens that working memory may fill: the whole budget less the reserve for the answer."""
        return self.max_working_memory_tokens - self.output_reserve_tokens
