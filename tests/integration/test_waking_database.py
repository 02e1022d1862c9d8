"""The first turn after a pause: a database that was scaled to zero takes its time, and the stream says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from functions.chat import app as chat
from octopus.errors import DatabaseUnavailable, OctopusError
from octopus.settings import Settings
from octopus.turn_events import Token, TurnEnd, TurnEvent, TurnStart
from tests.support.house import ADA


class Waking:
    """Stands for the services whose database needs `seconds` to wake up, or does not."""

    def __init__(self, seconds: float, error: OctopusError | None = None) -> None:
        self.settings = Settings()
        self.verifier = SimpleNamespace(verify=self._verify)
        self.turns = SimpleNamespace(begin=self._begin)
        self._seconds = seconds
        self._error = error

    async def _verify(self, _: Any) -> Any:
        return ADA

    async def follow_space(self) -> None:
        """The first that a turn asks of the database."""
        await asyncio.sleep(self._seconds)
        if self._error:
            raise self._error

    async def _begin(self, *_: Any) -> AsyncIterator[TurnEvent]:
        return self._events()

    async def _events(self) -> AsyncIterator[TurnEvent]:
        yield TurnStart(uuid4(), uuid4())
        yield Token("awake")
        yield TurnEnd(None, "end_turn")


async def ask(waking: Waking, monkeypatch: pytest.MonkeyPatch, accept: str = "text/event-stream") -> httpx2.Response:
    monkeypatch.setattr(chat, "services", lambda: waking)
    monkeypatch.setattr(chat, "PATIENCE_S", 0.1)
    transport = httpx2.ASGITransport(app=chat.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        body = {"agent_id": str(uuid4()), "message": "hi"}
        return await client.post("/v1/chat", json=body, headers={"Accept": accept})


def names(answer: httpx2.Response) -> list[str]:
    return [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event: ")]


async def test_a_turn_that_waits_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await ask(Waking(0.3), monkeypatch)
    assert names(answer) == ["waiting", "turn_start", "token", "turn_end"]


async def test_a_turn_that_begins_at_once_does_not_mention_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(await ask(Waking(0), monkeypatch)) == ["turn_start", "token", "turn_end"]


async def test_a_database_that_does_not_wake_up_is_an_event_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await ask(Waking(0.3, DatabaseUnavailable()), monkeypatch)
    assert names(answer) == ["waiting", "error"]
    assert '"retryable":true' in answer.text


async def test_an_error_at_once_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await ask(Waking(0, DatabaseUnavailable()), monkeypatch)
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"


async def test_one_document_just_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await ask(Waking(0.3), monkeypatch, accept="application/json")
    assert answer.json()["text"] == "awake"
