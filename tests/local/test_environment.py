"""What the children see, and what they must not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.environment import Places, child_environment, model_key

PLACES = Places(
    address="http://127.0.0.1:8080",
    aws="http://127.0.0.1:1",
    offline_model="http://127.0.0.1:2",
    state=Path("/state"),
    owner_dsn="owner",
    application_dsn="application",
    sweep_dsn="sweep",
)
USER = {
    "PATH": "/bin",
    "AWS_PROFILE": "production",
    "AWS_ACCESS_KEY_ID": "AKIAREAL",
    "AWS_SECRET_ACCESS_KEY": "real-secret",
    "AWS_SESSION_TOKEN": "real-token",
    "AWS_ENDPOINT_URL_S3": "https://s3.example",
    "AWS_CONFIG_FILE": "/home/user/.aws/config",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/token",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/real",
    "PGHOST": "production.example",
    "OCTOPUS_DATABASE_URL": "postgresql://production.example",
    "OCTOPUS_MODEL": "claude-other",
}


def test_nothing_of_the_users_aws_account_or_databases_is_seen() -> None:
    seen = child_environment(PLACES, USER)
    values = " ".join(seen.values())
    for real in ("production", "real", "AKIA", "example", "/home/user"):
        assert real not in values.lower() + values
    assert {name for name in seen if name.startswith("AWS_")} == {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_XRAY_SDK_ENABLED",
    }
    assert seen["AWS_ENDPOINT_URL"] == PLACES.aws


def test_what_the_stack_does_not_set_passes_through() -> None:
    seen = child_environment(PLACES, USER)
    assert (seen["PATH"], seen["OCTOPUS_MODEL"]) == ("/bin", "claude-other")


@pytest.mark.parametrize(
    ("user", "url", "key"),
    [
        ({}, PLACES.offline_model, "offline"),
        ({"ANTHROPIC_BASE_URL": "http://other"}, "http://other", "offline"),
        ({"ANTHROPIC_API_KEY": "sk"}, None, "sk"),
        ({"ANTHROPIC_API_KEY": "sk", "ANTHROPIC_BASE_URL": "http://other"}, "http://other", "sk"),
    ],
)
def test_the_model_is_the_users_if_they_name_one(user: dict[str, str], url: str | None, key: str) -> None:
    seen = child_environment(PLACES, user)
    assert seen.get("ANTHROPIC_BASE_URL") == url
    assert "ANTHROPIC_API_KEY" not in seen
    assert model_key(user) == key


def test_a_proxy_is_not_used_for_this_machine() -> None:
    seen = child_environment(PLACES, {"HTTPS_PROXY": "http://proxy", "no_proxy": "intranet"})
    assert seen["NO_PROXY"] == seen["no_proxy"] == "intranet,127.0.0.1,localhost"
