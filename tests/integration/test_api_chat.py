"""Buffered turns through the API function."""

from __future__ import annotations

import asyncio
import time

import pytest

from octopus.cloud.runtime import run
from octopus.cloud.wiring import services
from octopus.conversations.types import text_of
from octopus.settings import settings
from tests.conftest import DatabaseUrls
from tests.support.api import AnyToken, call
from tests.support.embedder import WordEmbedder
from tests.support.model import Say, ScriptedModel

ROOT = "acme/root/OctopusAdmin"


def test_a_turn_ends_by_its_limit_and_is_kept(database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before API Gateway gives up: the client is told to retry, and what was said is in the log."""
    monkeypatch.setenv("OCTOPUS_DATABASE_URL", database_urls.app)
    monkeypatch.setenv("OCTOPUS_EVENT_BUS", "bus")
    monkeypatch.setenv("OCTOPUS_TURN_MAX_S", "1")
    services.cache_clear()
    settings.cache_clear()
    endless = ScriptedModel(Say("half", gate=asyncio.Event()))
    vars(services()).update(embedder=WordEmbedder(), verifier=AnyToken(), model=endless)
    try:
        agent = call("POST", "/v1/agents", token=ROOT, body={"name": "aria", "system_prompt": "You."})[1]
        began = time.perf_counter()
        body = {"agent_id": agent["agent_id"], "message": "hi"}
        status, problem = call("POST", "/v1/chat", token="acme/ada", body=body)
        assert 1 <= time.perf_counter() - began < 10
        assert (status, problem["retryable"]) == (503, True)
        assert "after 1 s" in problem["detail"]
        [conversation] = call("GET", "/v1/conversations", token="acme/ada")[1]["items"]
        path = f"/v1/conversations/{conversation['conversation_id']}/messages"
        kept = call("GET", path, token="acme/ada")[1]["items"]
        assert [(m["role"], text_of(m["content"]), m["stop_reason"]) for m in kept] == [
            ("user", "hi", None),
            ("assistant", "half", "error"),
        ]
    finally:
        run(services().database.close())
        services.cache_clear()
        settings.cache_clear()
