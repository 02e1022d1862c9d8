"""Bodies that JSON, Python or PostgreSQL cannot take: a problem that says what to change, and nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from octopus.cloud.runtime import run
from octopus.cloud.wiring import services
from octopus.settings import settings
from tests.conftest import DatabaseUrls
from tests.support.api import AnyToken, call
from tests.support.embedder import WordEmbedder

ROOT = "acme/root/OctopusAdmin"
ARIA = {"name": "aria", "system_prompt": "You are Aria.", "description": "Helps.", "model": "claude-test"}


@pytest.fixture
def agent(database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.setenv("OCTOPUS_DATABASE_URL", database_urls.app)
    services.cache_clear()
    settings.cache_clear()
    vars(services()).update(embedder=WordEmbedder(), verifier=AnyToken())
    status, created = call("POST", "/v1/agents", token=ROOT, body=ARIA)
    assert status == 201
    yield created
    run(services().database.close())
    services.cache_clear()
    settings.cache_clear()


def agents() -> Any:
    return call("GET", "/v1/agents", token=ROOT)[1]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b'{"name": ' + b"7" * 5_000 + b"}", 400, "number that is too long"),
        (b"-" + b"7" * 5_000, 400, "number that is too long"),
        (b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "nested too deeply"),
        (b'{"memory_config": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, 400, "nested too deeply"),
        (b'{"name": "\xff"}', 400, "UTF-8"),
        (b'{"name": "\xed\xa0\x80"}', 400, "UTF-8"),
        ('{"name": "aria"}'.encode("utf-16"), 400, "UTF-8"),
        (b'{"name": "aria",}', 400, "not valid JSON"),
        (b"\x00", 400, "not valid JSON"),
        (b'{"name": "\x00"}', 400, "not valid JSON"),
        (b'{"name": NaN, "system_prompt": "You."}', 422, "name"),
        (
            b'{"name": "a", "system_prompt": "You.", "memory_config": {"episodic_min_score": NaN}}',
            422,
            "episodic_min_score",
        ),
        (
            b'{"name": "a", "system_prompt": "You.", "memory_config": {"semantic_top_k": Infinity}}',
            422,
            "semantic_top_k",
        ),
        (b'{"name": "a", "system_prompt": "You.", "memory_config": {"semantic_top_k": 1e999}}', 422, "semantic_top_k"),
        (rb'{"name": "\ud800", "system_prompt": "You."}', 422, "name"),
        (rb'{"name": "a", "system_prompt": "\udc00\ud800"}', 422, "system_prompt"),
        (rb'{"name": "a", "system_prompt": "You.", "memory_config": {"\ud800": 1}}', 422, "memory_config"),
        (rb'{"name": "a\u0000", "system_prompt": "You."}', 422, "name"),
        (rb'{"name": "a", "system_prompt": "You.", "\ud800": 1}', 422, ""),
    ],
    ids=lambda it: repr(it)[:60],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(
    agent: dict[str, Any], body: bytes, status: int, says: str
) -> None:
    before = agents()
    for method, path in (("POST", "/v1/agents"), ("PATCH", f"/v1/agents/{agent['agent_id']}")):
        answered, problem = call(method, path, token=ROOT, body=body)
        assert (answered, problem["status"]) == (status, status), problem
        assert says in problem["detail"] or method == "PATCH"
    assert agents() == before


@pytest.mark.parametrize("field", ["name", "system_prompt", "description"])
@pytest.mark.parametrize("value", [None, "a\x00b", "\ud800", 7, ["aria"]])
def test_a_field_of_an_agent_is_changed_to_text_or_not_at_all(agent: dict[str, Any], field: str, value: Any) -> None:
    status, problem = call(
        "PATCH", f"/v1/agents/{agent['agent_id']}", token=ROOT, body={"model": "other", field: value}
    )
    assert (status, problem["field"]) == (422, field)
    assert agents() == [agent]


@pytest.mark.parametrize("field", ["name", "system_prompt"])
@pytest.mark.parametrize("value", ["", " \n"])
def test_what_an_agent_needs_is_not_made_blank(agent: dict[str, Any], field: str, value: str) -> None:
    status, problem = call("PATCH", f"/v1/agents/{agent['agent_id']}", token=ROOT, body={field: value})
    assert (status, problem["field"]) == (422, field)
    assert agents() == [agent]


def test_null_gives_an_agent_the_deployments_model(agent: dict[str, Any]) -> None:
    status, changed = call("PATCH", f"/v1/agents/{agent['agent_id']}", token=ROOT, body={"model": None})
    kept = {"model": None, "version": changed["version"], "updated_at": changed["updated_at"]}
    assert (status, changed) == (200, agent | kept)


@pytest.mark.parametrize("value", ["NaN", "\x00", float("nan"), 10**400])
def test_a_memory_configuration_takes_no_odd_number(agent: dict[str, Any], value: Any) -> None:
    path = f"/v1/agents/{agent['agent_id']}/memory-config"
    status, problem = call("PATCH", path, token=ROOT, body={"semantic_top_k": 7, "episodic_min_score": value})
    assert status == 422, problem
    assert "episodic_min_score" in problem["detail"]
    assert agents() == [agent]
