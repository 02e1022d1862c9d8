"""The environment of the child processes: what the functions see on AWS, with nothing of the user's AWS
account."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.local.processes import CHECKOUT

REGION = "us-east-1"
ACCOUNT = "123456789012"  # moto's
BUCKET = "octopus-documents"
INGEST, REMOVE, SESSION_ENDED = "octopus-ingest", "octopus-remove", "octopus-session-ended"  # queues
EVENT_BUS = "octopus"
MODEL_SECRET = "octopus/anthropic"  # noqa: S105
MIGRATIONS = CHECKOUT / "infra" / "migrations"
AUDIENCE = "octopus"
OFFLINE_KEY = "offline"

# Variables of the user that no child may see: other accounts, other databases, other keys.
FOREIGN = ("AWS_", "AMAZON_", "BOTO_", "PG", "ANTHROPIC_", "POWERTOOLS_")


@dataclass(frozen=True)
class Places:
    """Where the pieces of one running stack are."""

    address: str  # http://host:port of the gateway
    aws: str  # http://host:port of moto
    offline_model: str  # http://host:port
    state: Path  # .octopus
    owner_dsn: str
    application_dsn: str
    sweep_dsn: str


def child_environment(places: Places, user: Mapping[str, str]) -> dict[str, str]:
    """What every child sees: `user`'s environment less the `FOREIGN`, plus the settings of this stack.

    Other settings of `octopus.settings` pass through, such as OCTOPUS_MODEL.
    """
    kept = {name: value for name, value in user.items() if not name.startswith(FOREIGN)}
    direct = ",".join(filter(None, [user.get("no_proxy") or user.get("NO_PROXY"), "127.0.0.1,localhost"]))
    return {
        **kept,
        **_aws(places.aws),
        **_model(places, user),
        "NO_PROXY": direct,
        "no_proxy": direct,
        "POWERTOOLS_SERVICE_NAME": "octopus",
        "POWERTOOLS_METRICS_NAMESPACE": "Octopus",
        "POWERTOOLS_TRACE_DISABLED": "true",
        "OCTOPUS_DATABASE_URL": places.application_dsn,
        "OCTOPUS_OWNER_DATABASE_URL": places.owner_dsn,
        "OCTOPUS_SWEEP_DATABASE_URL": places.sweep_dsn,
        "OCTOPUS_DATABASE_AUTH": "url",
        "OCTOPUS_MIGRATIONS_DIR": str(MIGRATIONS),
        "OCTOPUS_EMBEDDINGS": "minilm",
        "OCTOPUS_BUCKET": BUCKET,
        "OCTOPUS_INGEST_QUEUE_URL": f"{places.aws}/{ACCOUNT}/{INGEST}",
        "OCTOPUS_EVENT_BUS": EVENT_BUS,
        "OCTOPUS_MODEL_PROVIDER": "anthropic",
        "OCTOPUS_MODEL_SECRET": MODEL_SECRET,
        "OCTOPUS_JWT_ISSUER": f"{places.address}/issuer",
        "OCTOPUS_JWT_AUDIENCE": AUDIENCE,
        "OCTOPUS_JWKS_URL": f"{places.address}/issuer/.well-known/jwks.json",
        "OCTOPUS_LOCAL_ADDRESS": places.address,
        "OCTOPUS_LOCAL_STATE": str(places.state),
    }


def model_key(user: Mapping[str, str]) -> str:
    """The key to put into the secret; the offline model takes any."""
    return user.get("ANTHROPIC_API_KEY") or OFFLINE_KEY


def is_offline(user: Mapping[str, str]) -> bool:
    """Whether answers come from the offline model."""
    return not (user.get("ANTHROPIC_API_KEY") or user.get("ANTHROPIC_BASE_URL"))


def _aws(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
        # The user's profiles hold credentials and may hold endpoints.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_XRAY_SDK_ENABLED": "false",
    }


def _model(places: Places, user: Mapping[str, str]) -> dict[str, str]:
    """The real API with a key of the user's; else any server that the user names; else the offline model."""
    if is_offline(user):
        return {"ANTHROPIC_BASE_URL": places.offline_model}
    return {"ANTHROPIC_BASE_URL": user["ANTHROPIC_BASE_URL"]} if user.get("ANTHROPIC_BASE_URL") else {}
