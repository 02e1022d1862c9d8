"""The endpoints of sessions and episodes and the functions behind the bus, through their Lambda handlers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import boto3
import pytest

from functions.end_session.handler import handler as end_session
from functions.sweep.handler import handler as sweep
from infra.local.lambda_runtime import LambdaContext
from octopus.cloud.events import EventBridgeBus
from octopus.cloud.runtime import run
from octopus.cloud.wiring import services
from octopus.errors import ModelUnavailable, Unavailable
from octopus.identity import Principal, Role
from octopus.recall import Scope
from octopus.settings import settings
from tests.conftest import DatabaseUrls
from tests.support.api import AnyToken, call, request
from tests.support.aws import moto_server
from tests.support.embedder import WordEmbedder
from tests.support.sessions import ScriptedModel, hold_session

EVENTS = Path(__file__).parents[2] / "events"
ADA = "acme/ada"
ADMIN = "acme/root/OctopusAdmin"
TALK = [("My favourite colour is teal.", "Noted."), ("Thank you very much.", "You are welcome.")]
MEMORY = {"summary": "Colours.", "key_facts": [{"statement": "The user's favourite colour is teal.", "messages": [1]}]}


@dataclass
class Stack:
    agent_id: UUID
    queue_url: str

    def session(self) -> str:
        return str(run(hold_session(services().log, Scope("acme", "ada", self.agent_id), TALK)))

    def published(self) -> list[dict[str, Any]]:
        """What the bus has delivered since the last call."""
        sqs: Any = boto3.client("sqs")
        found = sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10).get("Messages", [])
        for message in found:
            sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in found]


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture
def stack(aws: str, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws)
    sqs: Any = boto3.client("sqs")
    events: Any = boto3.client("events")
    name = f"t-{uuid4().hex}"
    queue_url = sqs.create_queue(QueueName=name)["QueueUrl"]
    queue_arn = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.create_event_bus(Name=name)
    pattern = json.dumps({"source": ["octopus"], "detail-type": ["SessionEnded"]})
    events.put_rule(Name=name, EventBusName=name, EventPattern=pattern)
    events.put_targets(Rule=name, EventBusName=name, Targets=[{"Id": "q", "Arn": queue_arn}])
    monkeypatch.setenv("OCTOPUS_DATABASE_URL", database_urls.app)
    monkeypatch.setenv("OCTOPUS_SWEEP_DATABASE_URL", database_urls.sweep)
    monkeypatch.setenv("OCTOPUS_EVENT_BUS", name)
    services.cache_clear()
    settings.cache_clear()
    parts = vars(services())
    parts.update(embedder=WordEmbedder(), verifier=AnyToken(), model=ScriptedModel(lambda *_: MEMORY))
    admin = Principal("acme", "root", frozenset({Role.ADMIN}))
    memory = {"episodic_min_score": 0.3}
    agent = run(services().agents.create(admin, name="aria", system_prompt="You are Aria.", memory_config=memory))
    yield Stack(agent.agent_id, queue_url)
    run(services().database.close())
    services.cache_clear()


def test_a_session_from_close_to_recall_to_deletion(stack: Stack) -> None:
    conversation = stack.session()

    status, closed = call("POST", f"/v1/conversations/{conversation}/close", token=ADA)
    assert (status, closed["status"], closed["end_reason"]) == (200, "ended", "UserClosed")
    assert call("POST", f"/v1/conversations/{conversation}/close", token=ADA) == (200, closed)
    [event] = stack.published()
    assert end_session(event, LambdaContext("end-session")) == {"outcome": "written"}
    assert end_session(event, LambdaContext("end-session")) == {"outcome": "not_claimed"}

    status, page = call("GET", "/v1/episodes", token=ADA, query={"agent_id": str(stack.agent_id)})
    [episode] = page["items"]
    assert (status, episode["key_facts"], episode["end_reason"]) == (
        200,
        ["The user's favourite colour is teal."],
        "UserClosed",
    )
    search = {"agent_id": str(stack.agent_id), "query": "favourite colour"}
    status, found = call("POST", "/v1/episodes/search", token=ADA, body=search)
    assert [e["matched"] for e in found["episodes"]] == [["The user's favourite colour is teal."]]
    assert call("POST", "/v1/episodes/search", token=ADA, body={**search, "min_score": 1.0})[1]["episodes"] == []
    one = f"/v1/episodes/{episode['episode_id']}"
    assert call("GET", one, token=ADA) == (200, episode)
    for stranger in ("acme/eve", "other/ada/OctopusAdmin"):
        assert call("GET", one, token=stranger)[0] == 404
        assert call("DELETE", one, token=stranger)[0] == 404
    assert call("DELETE", one, token=ADA) == (204, None)
    assert call("GET", one, token=ADA)[0] == 404
    assert call("GET", f"/v1/conversations/{conversation}/messages", token=ADA)[0] == 404


def test_the_log_and_the_thumbs(stack: Stack) -> None:
    conversation = stack.session()

    status, page = call("GET", "/v1/conversations", token=ADMIN, query={"user_id": "ada"})
    assert [c["conversation_id"] for c in page["items"]] == [conversation]
    assert call("GET", "/v1/conversations", token="acme/eve", query={"user_id": "ada"})[0] == 403
    status, page = call("GET", f"/v1/conversations/{conversation}/messages", token=ADA, query={"limit": "3"})
    assert [m["seq"] for m in page["items"]] == [1, 2, 3]
    query = {"cursor": page["next_cursor"]}
    rest = call("GET", f"/v1/conversations/{conversation}/messages", token=ADA, query=query)[1]
    assert ([m["seq"] for m in rest["items"]], rest["next_cursor"]) == ([4], None)

    rate = f"/v1/conversations/{conversation}/messages/{page['items'][1]['message_id']}/feedback"
    status, thumb = call("POST", rate, token=ADA, body={"rating": -1, "comment": "too short"})
    assert (status, thumb["rating"], thumb["comment"]) == (200, -1, "too short")
    assert call("POST", rate, token="acme/eve", body={"rating": 1})[0] == 404
    for wrong in ({"rating": 0}, {"rating": 1, "comment": "\x00"}, {}, {"rating": 1, "user_id": "ada"}):
        assert call("POST", rate, token=ADA, body=wrong)[0] == 422
    for query in ({"limit": "0"}, {"cursor": "x"}):
        assert call("GET", f"/v1/conversations/{conversation}/messages", token=ADA, query=query)[0] == 422


def test_closing_during_a_turn_says_when_to_come_back(stack: Stack) -> None:
    conversation = stack.session()
    hold = "update conversations set turn_lease_until = now() + interval '1 minute'"
    run(services().database.run("acme", hold))

    answer = request("POST", f"/v1/conversations/{conversation}/close", token=ADA)

    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (409, "2")
    assert stack.published() == []


def test_the_recorded_events_are_taken(stack: Stack) -> None:
    ended = json.loads((EVENTS / "session-ended.json").read_text())
    assert end_session(ended, LambdaContext("end-session")) == {"outcome": "not_claimed"}  # no such session here

    conversation = stack.session()
    call("POST", f"/v1/conversations/{conversation}/close", token=ADA)
    ended["detail"] |= {"conversation_id": conversation, "agent_id": str(stack.agent_id), "last_seq": 4}
    assert end_session(ended, LambdaContext("end-session")) == {"outcome": "written"}

    stack.session()
    run(services().database.run("acme", "update conversations set last_message_at = now() - interval '1 hour'"))
    scheduled = json.loads((EVENTS / "scheduler-sweep.json").read_text())
    assert sweep(scheduled, LambdaContext("sweep"))["ended"] == 1
    assert [event["detail"]["reason"] for event in stack.published()] == ["UserClosed", "Timeout"]


def test_what_lies_in_the_dead_letter_queue_can_be_delivered_again(stack: Stack) -> None:
    def unavailable(*_: object) -> dict[str, Any]:
        raise ModelUnavailable()

    conversation = stack.session()
    call("POST", f"/v1/conversations/{conversation}/close", token=ADA)
    [event] = stack.published()
    working = services().model
    vars(services()).update(model=ScriptedModel(unavailable))
    for _ in range(3):  # Lambda's attempts
        with pytest.raises(ModelUnavailable):
            end_session(event, LambdaContext("end-session"))
    dead = {"requestContext": {"condition": "RetriesExhausted"}, "requestPayload": event}  # as Lambda writes it
    vars(services()).update(model=working)
    del vars(services())["episode_writer"]

    assert end_session(dead["requestPayload"], LambdaContext("end-session")) == {"outcome": "written"}
    assert len(call("GET", "/v1/episodes", token=ADA)[1]["items"]) == 1


async def test_a_bus_that_does_not_take_the_event_is_said(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws)
    with pytest.raises(Unavailable):
        await EventBridgeBus("no-such-bus").publish("SessionEnded", {"n": 1})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(Unavailable):
        await EventBridgeBus("octopus").publish("SessionEnded", {"n": 1})


def test_export_and_erasure_over_http(stack: Stack) -> None:
    stack.session()
    memory = "/v1/users/ada/memory"

    answer = request("GET", memory, token=ADA)
    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "application/jsonl")
    assert [json.loads(line)["type"] for line in answer["body"].splitlines()][:2] == ["conversation", "message"]
    assert call("DELETE", memory, token=ADA)[0] == 403
    assert request("GET", memory, token="acme/eve")["statusCode"] == 403
    for other in ("/v1/users/Ada/memory", "/v1/users/%61da/memory", "/v1/users/ad_/memory", "/v1/users/a%/memory"):
        assert call("DELETE", other, token=ADMIN)[1]["counts"]["conversations"] == 0
    assert request("GET", memory, token=ADA)["body"]

    status, erasure = call("DELETE", memory, token=ADMIN)

    assert (status, erasure["counts"]["messages"], erasure["erased_by"]) == (200, 4, "root")
    assert request("GET", memory, token=ADA)["body"] == ""
    assert call("GET", "/v1/conversations", token=ADA)[1]["items"] == []
