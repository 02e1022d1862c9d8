"""The endpoints of procedures and tools, through the Lambda handler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from octopus.cloud.runtime import run
from octopus.cloud.wiring import services
from octopus.identity import Principal, Role
from octopus.settings import settings
from tests.conftest import DatabaseUrls
from tests.support.api import AnyToken, call
from tests.support.embedder import WordEmbedder

ROOT, ADA = "acme/root/OctopusAdmin", "acme/ada"
STEPS = [{"order": 2, "instruction": "Create it.", "tool_name": "vendor_create"}, {"order": 1, "instruction": "Ask."}]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture
def agent_id(database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("OCTOPUS_DATABASE_URL", database_urls.app)
    monkeypatch.setenv("OCTOPUS_EVENT_BUS", "bus")
    monkeypatch.setenv("OCTOPUS_BUCKET", "bucket")
    monkeypatch.setenv("OCTOPUS_TOOL_HOSTS", '["api.test"]')
    services.cache_clear()
    settings.cache_clear()
    vars(services()).update(embedder=WordEmbedder(), verifier=AnyToken())
    admin = Principal("acme", "root", frozenset({Role.ADMIN}))
    agent = run(services().agents.create(admin, name="aria", system_prompt="You are Aria."))
    yield str(agent.agent_id)
    run(services().database.close())
    services.cache_clear()
    settings.cache_clear()


def api(method: str, path: str, body: Any = None, token: str = ROOT, **query: str) -> tuple[int, Any]:
    return call(method, f"/v1{path}", token=token, body=body, query=query)


def draft(agent_id: str | None, **changes: Any) -> dict[str, Any]:
    given = {
        "agent_id": agent_id,
        "name": "onboard_vendor",
        "description": "Takes a vendor on.",
        "trigger_pattern": "onboard.*vendor",
        "steps": STEPS,
    }
    return given | changes


def test_the_life_of_a_procedure(agent_id: str) -> None:
    status, created = api("POST", "/procedures", draft(agent_id))
    assert (status, created["status"], created["version"]) == (201, "approved", 1)
    assert [(step["order"], step["instruction"]) for step in created["steps"]] == [(1, "Ask."), (2, "Create it.")]
    path = f"/procedures/{created['procedure_id']}"
    assert api("GET", path) == (200, created)

    status, edited = api("PATCH", path, {"trigger_kind": "phrases", "trigger_pattern": "new vendor", "version": 1})
    assert (status, edited["version"], edited["trigger_pattern"]) == (200, 2, "new vendor")
    status, problem = api("PATCH", path, {"priority": 3, "version": 1})
    assert (status, problem["type"]) == (409, "urn:octopus:problem:conflict")

    status, rejected = api("PATCH", f"{path}/reject", {"rejection_reason": "obsolete"})
    assert (status, rejected["status"], rejected["review_note"]) == (200, "rejected", "obsolete")
    status, approved = api("PATCH", f"{path}/approve", {"review_note": "not quite", "version": 3})
    assert (status, approved["status"], approved["reviewed_by"]) == (200, "approved", "root")
    assert api("PATCH", f"{path}/approve", {})[0] == 409

    status, restored = api("POST", f"{path}/rollback", {"version": 1})
    assert (status, restored["version"], restored["trigger_pattern"]) == (200, 5, "onboard.*vendor")
    status, versions = api("GET", f"{path}/versions")
    assert [(v["version"], v["change"], v["note"]) for v in versions] == [
        (5, "rolled back", None),
        (4, "approved", "not quite"),
        (3, "rejected", "obsolete"),
        (2, "edited", None),
        (1, "created", None),
    ]
    status, review = api("GET", f"{path}/review")
    assert (status, review["procedure"], review["evidence"], review["conversation"]) == (200, restored, [], [])

    assert api("DELETE", path)[0] == 204
    assert api("GET", path)[0] == 404


def test_lists_are_filtered(agent_id: str) -> None:
    api("POST", "/procedures", draft(agent_id, name="own"))
    api("POST", "/procedures", draft(None, name="shared", is_active=False))
    status, page = api("GET", "/procedures", limit="1")
    assert (status, [it["name"] for it in page["items"]]) == (200, ["shared"])
    status, page = api("GET", "/procedures", limit="1", cursor=page["next_cursor"])
    assert ([it["name"] for it in page["items"]], page["next_cursor"]) == (["own"], None)
    assert [it["name"] for it in api("GET", "/procedures", is_active="false")[1]["items"]] == ["shared"]
    assert api("GET", "/procedures", status="pending")[1]["items"] == []
    assert [it["name"] for it in api("GET", "/procedures", agent_id=str(uuid4()))[1]["items"]] == ["shared"]
    assert api("GET", "/procedures", status="open")[0] == 422
    assert api("GET", "/procedures/statistics") == (200, [])


def test_a_message_can_be_tried(agent_id: str) -> None:
    api("POST", "/procedures", draft(agent_id))
    status, trial = api("POST", "/procedures/test", {"agent_id": agent_id, "message": "please onboard the vendor"})
    assert (status, trial["match"]["rule"], trial["match"]["decided_by"]) == (200, "pattern", "alone")
    first = trial["candidates"][0]
    assert (first["verdict"], first["start"], first["end"]) == ("followed", 7, 25)
    assert api("POST", "/procedures/test", {"agent_id": str(uuid4()), "message": "x"})[0] == 404


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"trigger_pattern": "a(b"}, "trigger_pattern"),
        ({"trigger_pattern": "x*"}, "trigger_pattern"),
        ({"trigger_kind": "wish"}, "trigger_kind"),
        ({"name": "[x]"}, "name"),
        ({"steps": []}, "steps"),
        ({"steps": [{"instruction": "a", "order": 1}, {"instruction": "b", "order": 1}]}, "steps"),
        ({"tenant_id": "other"}, "tenant_id"),
        ({"status": "approved"}, "status"),
        ({"priority": 5_000}, "priority"),
    ],
)
def test_bad_input_is_refused_with_the_field(agent_id: str, changes: dict[str, Any], field: str) -> None:
    status, problem = api("POST", "/procedures", draft(agent_id, **changes))
    assert status == 422
    assert problem["field"].startswith(field)
    assert api("GET", "/procedures")[1]["items"] == []


def test_a_trigger_is_refused_with_position_and_reason(agent_id: str) -> None:
    _, problem = api("POST", "/procedures", draft(agent_id, trigger_pattern="vendor(?=s)"))
    assert (problem["position"], problem["reason"]) == (6, "invalid perl operator: (?=")


def test_only_administrators_of_the_tenant(agent_id: str) -> None:
    _, created = api("POST", "/procedures", draft(agent_id))
    path = f"/procedures/{created['procedure_id']}"
    for method, where, body in [
        ("GET", "/procedures", None),
        ("POST", "/procedures", draft(agent_id, name="mine")),
        ("GET", path, None),
        ("PATCH", path, {"priority": 1}),
        ("DELETE", path, None),
        ("PATCH", f"{path}/approve", {}),
        ("PATCH", f"{path}/reject", {"rejection_reason": "x"}),
        ("GET", f"{path}/versions", None),
        ("GET", f"{path}/review", None),
        ("POST", f"{path}/rollback", {"version": 1}),
        ("POST", "/procedures/test", {"agent_id": agent_id, "message": "x"}),
        ("GET", "/procedures/statistics", None),
        ("GET", f"/agents/{agent_id}/tools", None),
    ]:
        assert api(method, where, body, token=ADA)[0] == 403, f"{method} {where}"
        if created["procedure_id"] in where:
            assert api(method, where, body, token="umbrella/root/OctopusAdmin")[0] == 404, f"{method} {where}"
    assert api("GET", path) == (200, created)


def test_the_tools_of_an_agent(agent_id: str) -> None:
    path = f"/agents/{agent_id}/tools"
    tool = {
        "name": "vendor_create",
        "description": "Creates a vendor.",
        "input_schema": SCHEMA,
        "target": {"kind": "lambda", "function": "octopus-tool-vendors"},
    }
    status, created = api("POST", path, tool)
    assert (status, created["target"], created["version"]) == (201, tool["target"], 1)
    assert api("GET", path) == (200, [created])
    assert api("GET", f"{path}/vendor_create") == (200, created)

    target = {"kind": "https", "url": "https://api.test/vendors", "secret": "crm"}
    status, changed = api("PATCH", f"{path}/vendor_create", {"target": target, "is_active": False})
    assert (status, changed["target"], changed["is_active"], changed["version"]) == (200, target, False, 2)

    for bad, field in [
        ({"target": {"kind": "https", "url": "https://evil.test/"}}, "target.url"),
        ({"target": {"kind": "lambda", "function": "billing"}}, "target.function"),
        ({"input_schema": {"type": "array"}}, "input_schema"),
        ({"description": None}, ""),
    ]:
        status, problem = api("PATCH", f"{path}/vendor_create", bad)
        assert (status, str(problem.get("field") or "")) == (422, field)
    assert api("POST", path, tool | {"name": "search_knowledge"})[0] == 409
    assert api("POST", path, tool | {"name": "no spaces"})[0] == 422

    assert api("GET", path, token="umbrella/root/OctopusAdmin")[0] == 404
    assert api("DELETE", f"{path}/vendor_create")[0] == 204
    assert api("DELETE", f"{path}/vendor_create")[0] == 404
    assert api("GET", f"/conversations/{uuid4()}/tool-calls", token=ADA) == (200, [])
