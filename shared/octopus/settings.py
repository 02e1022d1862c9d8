"""The environment, read once and in one place.

Every function of the stack reads the same model; a function that does not need a value leaves it unset,
and the wiring (`octopus.cloud.wiring`) refuses, naming the variable, when a needed one is missing.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

Embeddings = Literal["titan", "titan-512", "titan-256", "minilm"]


class Settings(BaseSettings):
    """Settings of one execution environment; names carry the prefix ``OCTOPUS_`` unless an alias says otherwise.

    An empty variable is one that is not set: templates leave values empty, and `sam local` what it cannot resolve.
    """

    model_config = SettingsConfigDict(env_prefix="OCTOPUS_", env_ignore_empty=True, frozen=True, extra="ignore")

    # Database. With IAM authentication the URL has no password: a token is made at each connect.
    database_url: SecretStr | None = None
    owner_database_url: SecretStr | None = None
    sweep_database_url: SecretStr | None = None
    database_auth: Literal["url", "iam"] = "url"
    owner_secret: str | None = None  # where RDS keeps the owner's password; only migrations use it
    database_pool_size: int = Field(default=6, ge=1, le=50)
    database_connect_timeout_s: float = Field(default=5.0, gt=0)
    migrations_dir: Path | None = None

    # Model provider: the Anthropic SDK on the Anthropic API or on Bedrock.
    model_provider: Literal["anthropic", "bedrock"] = "anthropic"
    model: str = "claude-sonnet-4-6"
    summary_model: str | None = None
    model_secret: str | None = None
    model_token_factor: float = Field(
        default=1.25, ge=1, le=3, description="before any usage was seen; see TokenFactors"
    )
    model_cache_min_tokens: int = Field(default=1024, gt=0, description="the shortest prefix that the model caches")
    model_timeout_s: float = Field(default=120.0, gt=0)
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")

    # Embeddings: Titan v2 on Bedrock of 1,024, 512 or 256 dimensions, or the small ONNX model of the embedded default.
    # For a database without vectors; one that has some knows by itself, and infra/deploy.md says how to change it.
    embeddings: Embeddings = "titan"

    # Objects and events.
    bucket: str | None = None
    upload_max_bytes: int = Field(default=50 * 1024 * 1024, gt=0)
    event_bus: str | None = None
    ingest_queue_url: str | None = None

    # Documents: how large they may be, and how they are cut. Lambda's Python finds its libraries by the path.
    library_path: str | None = Field(default=None, validation_alias="LD_LIBRARY_PATH")
    document_max_pages: int = Field(default=2_000, gt=0)
    chunk_strategy: Literal["structure", "sentence", "fixed"] = "structure"
    chunk_tokens: int = Field(default=512, ge=32, le=8_192, description="less where the embedding model sees less")
    chunk_overlap_tokens: int = Field(default=64, ge=0, le=4_096)

    # Procedures: whether what one administrator writes waits for another's approval.
    procedures_four_eyes: bool = False

    # Tools: which functions and hosts they may call, and where their secrets are (prefix/tenant/name).
    tool_function_prefix: str = "octopus-tool-"
    tool_hosts: list[str] = Field(default=[], description="name, name:port or *.parent; a JSON list in the environment")
    tool_secrets_prefix: str = "octopus/tools"
    tool_result_max_tokens: int = Field(default=2_000, ge=50, le=100_000)

    # Identity: any OIDC issuer.
    jwt_issuer: str | None = None
    jwt_audience: str | None = None
    jwks_url: str | None = None
    jwt_tenant_claim: str = "tenant_id"
    jwt_groups_claim: str = "cognito:groups"

    # One turn.
    body_max_bytes: int = Field(default=1_000_000, gt=0)
    message_max_chars: int = Field(default=100_000, gt=0)
    recall_deadline_ms: int = Field(default=2_000, gt=0, description="deadline of each store in the read phase")
    turn_lease_s: int = Field(default=30, ge=5, description="a turn that stops renewing loses its conversation")
    turn_max_s: int = Field(default=600, gt=0, description="the longest a turn may take")


@cache
def settings() -> Settings:
    """The settings of this execution environment."""
    return Settings()


def continue_trace(header: str | None) -> None:
    """Put this request's X-Ray trace where Python's runtime client puts it, and the SDK and the logger look for it.

    For an app behind Lambda Web Adapter, which has no runtime client. `header` has the form
    ``Root=1-…;Parent=…;Sampled=1``.
    """
    if header:
        os.environ["_X_AMZN_TRACE_ID"] = header
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)
