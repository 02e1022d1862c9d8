"""A change of the embedding model as an operator makes it: by events to the function, with the API in use all the time.

The embedder is the one for AWS, on a stand-in for Bedrock; from 1,024 to 512 dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.reembed.handler import handler
from infra.local.lambda_runtime import LambdaContext
from infra.local.stand_ins import StandIns
from octopus.cloud import embedding_space
from octopus.cloud.runtime import run
from octopus.cloud.titan import TitanEmbedder
from octopus.cloud.wiring import services
from octopus.identity import Principal, Role
from octopus.settings import settings
from tests.conftest import DatabaseUrls
from tests.support.api import AnyToken, call

ROOT = "acme/root/OctopusAdmin"
LARGE, SMALL = TitanEmbedder().model, TitanEmbedder(512).model


@pytest.fixture
def agent_id(database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    with StandIns(tmp_path) as bedrock:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", bedrock.url)
        monkeypatch.setenv("OCTOPUS_DATABASE_URL", database_urls.app)
        monkeypatch.setenv("OCTOPUS_SWEEP_DATABASE_URL", database_urls.sweep)
        monkeypatch.setenv("OCTOPUS_EVENT_BUS", "bus")
        monkeypatch.setenv("OCTOPUS_BUCKET", "bucket")
        monkeypatch.setattr(embedding_space, "TRUSTED_S", 0.0)
        monkeypatch.setattr(LambdaContext, "get_remaining_time_in_millis", lambda _: 300_000)
        services.cache_clear()
        settings.cache_clear()
        vars(services()).update(verifier=AnyToken())
        admin = Principal("acme", "root", frozenset({Role.ADMIN}))
        agent = run(services().agents.create(admin, name="aria", system_prompt="You are Aria."))
        yield str(agent.agent_id)
        run(services().database.close())
        run(services().sweep_database.close())
        services.cache_clear()
        settings.cache_clear()


def order(**event: Any) -> dict[str, Any]:
    return handler(event, LambdaContext("octopus-reembed"))


def write(agent_id: str, name: str, phrase: str) -> None:
    draft = {
        "agent_id": agent_id,
        "name": name,
        "description": f"What to do about {name}.",
        "trigger_pattern": "zzzz",
        "example_phrases": [phrase],
        "steps": [{"order": 1, "instruction": "Do it."}],
    }
    assert call("POST", "/v1/procedures", token=ROOT, body=draft)[0] == 201


def followed(agent_id: str, message: str) -> str | None:
    body = {"agent_id": agent_id, "message": message}
    status, trial = call("POST", "/v1/procedures/test", token=ROOT, body=body)
    assert status == 200
    return trial["match"] and str(trial["match"]["procedure"]["name"])


def test_from_the_order_to_the_new_model(agent_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(agent_id, "visas", "I need a visa for my journey")
    assert order(action="status") == {"current": LARGE, "coming": None, "total": {}, "left": {}, "dropping": {}}
    assert "Reembed" not in capsys.readouterr().out

    begun = order(action="change", embeddings="titan-512")
    assert (begun["current"], begun["coming"], begun["left"]) == (LARGE, SMALL, {"procedures": 1})
    assert '"Reembed_procedures_left":[1.0]' in capsys.readouterr().out
    assert followed(agent_id, "I need a visa for my journey") == "visas"
    write(agent_id, "refunds", "I want my money back")
    assert order(action="status")["left"] == {"procedures": 2}

    done = order(source="aws.scheduler", detail="{}")

    assert (done["current"], done["coming"], list(done["dropping"])) == (SMALL, None, [LARGE])
    assert followed(agent_id, "I need a visa for my journey") == "visas"
    assert followed(agent_id, "I want my money back") == "refunds"
    assert services().embedder.model == SMALL
    write(agent_id, "parking", "where can I leave my car")
    assert followed(agent_id, "where can I leave my car") == "parking"


def test_another_environment_follows_without_a_restart_and_goes_on_where_it_was(agent_id: str) -> None:
    """One that has a turn under way finishes it in the space in which it began."""
    write(agent_id, "visas", "I need a visa for my journey")
    earlier = services().procedure_store
    [vector] = run(services().embedder.embed(["I need a visa for my journey"]))
    order(action="change", embeddings="titan-512")
    order(action="work")
    run(services().follow_space())
    assert services().procedure_store is not earlier
    agent = run(services().agents.list(Principal("acme", "root", frozenset({Role.ADMIN}))))[0]
    [(procedure, cosine)] = run(earlier.nearest_procedures("acme", agent.agent_id, vector, 1))
    assert (procedure.name, round(cosine, 2)) == ("visas", 1.0)


@pytest.mark.parametrize(
    ("event", "status", "says"),
    [
        ({"action": "cancel"}, 404, "No change of the embedding model is under way."),
        ({"action": "change"}, 422, "say which embedder"),
        ({"action": "change", "embeddings": "word2vec"}, 422, "embeddings: Input should be 'titan'"),
        ({"action": "change", "embeddings": "titan"}, 409, "is the model in use"),
        ({"action": "explode"}, 422, "action: Input should be"),
    ],
)
def test_what_cannot_be_done_is_said(agent_id: str, event: dict[str, Any], status: int, says: str) -> None:
    write(agent_id, "visas", "I need a visa for my journey")
    refused = order(**event)
    assert refused["status"] == status
    assert says in refused["detail"]


def test_a_second_change_is_refused_and_the_first_can_be_cancelled(agent_id: str) -> None:
    write(agent_id, "visas", "I need a visa for my journey")
    order(action="change", embeddings="titan-512")
    assert order(action="change", embeddings="titan-256")["status"] == 409
    cancelled = order(action="cancel")
    assert (cancelled["current"], cancelled["coming"]) == (LARGE, None)
    assert order(action="work")["current"] == LARGE


def test_a_database_without_vectors_has_nothing_to_change(agent_id: str) -> None:
    assert "configure the model instead" in order(action="change", embeddings="titan-512")["detail"]
