"""The wire contract, over HTTP on the running stack: what a chat application sends, and what it gets back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest

from infra.local.client import Client
from infra.local.state import Running

ADMIN = ("OctopusAdmin", "OctopusDebug")


class Tenant:
    """A tenant of this test's own with an agent, seen through plain HTTP."""

    def __init__(self, stack: Running) -> None:
        self.name = f"t-{uuid4().hex[:8]}"
        self.stack = stack
        self.ada = Client(stack.address, self.name, "ada", ADMIN)
        self.agent_id: str = self.ada.post("/v1/agents", {"name": "aria", "system_prompt": "You are Aria."})["agent_id"]
        self.http = httpx2.Client(base_url=stack.address, timeout=30)
        self.http.headers["Authorization"] = self.ada.authorization

    def chat(self, **body: Any) -> httpx2.Response:
        whole = {"agent_id": self.agent_id, "message": "hello", **body}
        return self.http.post("/v1/chat", json=whole, headers={"Accept": "application/json"})

    def rows(self) -> int:
        """Messages, turns and conversations of the tenant."""
        with psycopg.connect(self.stack.database_url) as connection:
            connection.execute("select set_config('octopus.tenant_id', %s, true)", (self.name,))
            tables = ("messages", "turns", "conversations")
            counts = [connection.execute(f"select count(*) from {table}").fetchone() for table in tables]
        return sum(count[0] for count in counts if count)


@pytest.fixture
def tenant(stack: Running) -> Iterator[Tenant]:
    tenant = Tenant(stack)
    yield tenant
    tenant.http.close()
    tenant.ada.close()


def test_the_stream_is_the_contracts(tenant: Tenant) -> None:
    body = {"agent_id": tenant.agent_id, "message": "hello", "inspect": True}
    with tenant.http.stream("POST", "/v1/chat", json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = list(answer.iter_lines())
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert names[:3] == ["turn_start", "memory", "context"]
    assert set(names[3:-1]) == {"token"}
    assert names[-1] == "turn_end"
    assert {"turn_id", "conversation_id"} <= data[0].keys()
    assert {"name", "tokens", "count", "ms", "degraded"} == data[1]["sections"][0].keys()
    assert {"message_id", "stop_reason", "usage", "elapsed_ms"} <= data[-1].keys()
    assert "".join(item["text"] for item in data[3:-1]).startswith("(offline model)")


def test_a_buffered_turn_says_the_same(tenant: Tenant) -> None:
    turn = tenant.chat().json()
    assert turn["text"].startswith("(offline model)")
    assert turn["stop_reason"] == "end_turn"
    messages = tenant.http.get(f"/v1/conversations/{turn['conversation_id']}/messages").json()["items"]
    assert [message["role"] for message in messages] == ["user", "assistant"]


def test_the_same_message_id_twice_is_one_turn(tenant: Tenant) -> None:
    first, again = tenant.chat(message_id="m-1").json(), tenant.chat(message_id="m-1").json()
    assert (first["turn_id"], first["message_id"], first["text"]) == (
        again["turn_id"],
        again["message_id"],
        again["text"],
    )
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert tenant.rows() == 4


def test_the_same_message_id_twice_at_once_is_one_turn(tenant: Tenant) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: tenant.chat(message_id="m-1"), range(4)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 409)
    assert len({answer.json()["turn_id"] for answer in answers if answer.status_code == 200}) == 1
    assert tenant.rows() == 4


def test_a_closed_conversation_is_continued_in_a_new_one(tenant: Tenant) -> None:
    first = tenant.chat().json()["conversation_id"]
    assert tenant.ada.post(f"/v1/conversations/{first}/close", None)["status"] == "ended"
    turn = tenant.chat(conversation_id=first).json()
    assert turn["continued_from"] == first
    assert turn["conversation_id"] != first


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({"message": ""}, 422, "message: must not be empty"),
        ({"message": "a\x00b"}, 422, "NUL"),
        ({"message": "x" * 100_001}, 413, "at most 100000"),
        ({"message": "x" * 1_000_001}, 413, "bytes"),
        ({"agent_id": str(uuid4())}, 404, "no agent"),
        ({"agent_id": "aria"}, 422, "agent_id"),
        ({"conversation_id": str(uuid4())}, 404, "no conversation"),
        ({"message_id": ""}, 422, "message_id"),
        ({"message_id": "m" * 201}, 422, "message_id"),
        ({"tenant_id": "other"}, 422, "tenant_id"),
        ({"message": None}, 422, "message"),
    ],
)
def test_bad_input_says_what_to_change_and_changes_nothing(
    tenant: Tenant, body: dict[str, Any], status: int, detail: str
) -> None:
    answer = tenant.chat(**body)
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert detail in problem["detail"]
    assert problem["type"].startswith("urn:octopus:problem:")
    assert tenant.rows() == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"message": "\xff"}', b"null", b'"text"'])
def test_a_broken_body_is_refused(tenant: Tenant, body: bytes) -> None:
    for path in ("/v1/chat", "/v1/agents"):
        answer = tenant.http.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422), (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    assert tenant.rows() == 0


def test_without_a_good_token_nobody_gets_in(tenant: Tenant) -> None:
    good = tenant.ada.authorization
    forged = good[:-6] + ("AAAAAA" if not good.endswith("AAAAAA") else "BBBBBB")
    for header in (None, "", "Bearer", "Bearer x.y.z", "Basic YTpi", forged, good.replace("Bearer ", "")):
        headers = {} if header is None else {"Authorization": header}
        for method, path in (("POST", "/v1/chat"), ("GET", "/v1/agents"), ("GET", "/v1/nowhere")):
            answer = httpx2.request(
                method, tenant.stack.address + path, headers=headers, json={} if method == "POST" else None
            )
            assert answer.status_code == 401, (header, path, answer.text)
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["detail"]


def test_a_foreign_conversation_is_not_there(tenant: Tenant, stack: Running) -> None:
    turn = tenant.chat().json()
    conversation_id, turn_id = turn["conversation_id"], turn["turn_id"]
    eve = Client(stack.address, tenant.name, "eve")
    stranger = Client(stack.address, f"{tenant.name}-2", "ada", ADMIN)
    for client in (eve, stranger):
        for path in (f"/v1/conversations/{conversation_id}", f"/v1/conversations/{conversation_id}/messages"):
            assert client.try_get(path)[0] == 404
        body = {"agent_id": tenant.agent_id, "message": "hi", "conversation_id": conversation_id}
        assert client.try_post("/v1/chat", body)[0] == 404
        assert client.try_post(f"/v1/conversations/{conversation_id}/close", None)[0] == 404
    assert eve.try_get(f"/v1/conversations/{conversation_id}/turns/{turn_id}/context")[0] == 403
    assert stranger.try_get(f"/v1/conversations/{conversation_id}/turns/{turn_id}/context")[0] == 404
    assert eve.try_post("/v1/agents", {"name": "x", "system_prompt": "y"})[0] == 403
    eve.close()
    stranger.close()


def test_a_memory_configuration_is_changed_in_part_and_checked(tenant: Tenant) -> None:
    path = f"/v1/agents/{tenant.agent_id}/memory-config"
    assert tenant.http.get(path).json()["semantic_top_k"] == 5
    changed = tenant.http.patch(path, json={"semantic_top_k": 3}).json()
    assert (changed["semantic_top_k"], changed["episodic_top_k"]) == (3, 3)
    for body, field in [
        ({"semantic_top_k": 0}, "semantic_top_k"),
        ({"semantic_min_score": 1.5}, "semantic_min_score"),
        ({"pruning_strategy": "lifo"}, "pruning_strategy"),
        ({"top_k": 3}, "top_k"),
        ({"output_reserve_tokens": 120_000, "max_working_memory_tokens": 1_000}, "memory_config"),
    ]:
        answer = tenant.http.patch(path, json=body)
        assert answer.status_code == 422
        assert field in answer.json()["detail"] or answer.json()["field"] == field
    assert tenant.http.patch(path, json={"semantic_top_k": None}).json()["semantic_top_k"] == 5
