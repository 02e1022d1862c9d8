"""Fixtures of the local stack's own tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.processes import free_port, start_module, stop, wait_for
from tests.local.aws import Aws


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log, port = tmp_path_factory.mktemp("moto") / "log", free_port()
    endpoint = f"http://127.0.0.1:{port}"
    server = start_module("moto.server", "-p", str(port), log=log, environment={"PATH": os.environ["PATH"]})
    wait_for(f"{endpoint}/moto-api/", server, log)
    yield endpoint
    stop(server)


@pytest.fixture
def aws(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Aws:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    aws = Aws(endpoint, tmp_path)
    aws.make()
    return aws
