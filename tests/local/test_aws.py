"""moto with the resources of the stack: events arrive where the worker waits, and objects outlive the
server."""

from __future__ import annotations

from typing import Any

import boto3
import httpx2
import pytest

from infra.local.environment import BUCKET, EVENT_BUS, INGEST, MODEL_SECRET, REMOVE, SESSION_ENDED
from infra.local.mirror import Mirror
from tests.local.aws import ORIGIN, Aws


def keys(events: list[Any]) -> list[tuple[str, str]]:
    return [(record["eventName"], record["s3"]["object"]["key"]) for event in events for record in event["Records"]]


def test_objects_put_posted_and_removed_send_events_to_their_queues(aws: Aws) -> None:
    s3: Any = boto3.client("s3")
    s3.put_object(Bucket=BUCKET, Key="a/put.md", Body=b"1")
    form = s3.generate_presigned_post(BUCKET, "a/posted.md")
    preflight = httpx2.options(form["url"], headers={"Origin": ORIGIN, "Access-Control-Request-Method": "POST"})
    assert preflight.headers["access-control-allow-origin"] in ("*", ORIGIN)
    posted = httpx2.post(form["url"], data=form["fields"], files={"file": b"2"}, headers={"Origin": ORIGIN})
    assert posted.is_success
    assert posted.headers["access-control-allow-origin"] in ("*", ORIGIN)
    s3.delete_object(Bucket=BUCKET, Key="a/put.md")

    assert keys(aws.received(INGEST)) == [("ObjectCreated:Put", "a%2Fput.md"), ("ObjectCreated:Post", "a%2Fposted.md")]
    assert keys(aws.received(REMOVE)) == [("ObjectRemoved:Delete", "a%2Fput.md")]


def test_only_an_ended_session_reaches_its_queue(aws: Aws) -> None:
    def entry(source: str, kind: str) -> dict[str, str]:
        return {"Source": source, "DetailType": kind, "Detail": '{"n": 1}', "EventBusName": EVENT_BUS}

    boto3.client("events").put_events(
        Entries=[entry("octopus", "SessionEnded"), entry("octopus", "Other"), entry("other", "SessionEnded")]
    )
    [event] = aws.received(SESSION_ENDED)
    assert (event["source"], event["detail-type"], event["detail"]) == ("octopus", "SessionEnded", {"n": 1})


@pytest.mark.parametrize("queue", [INGEST, REMOVE, SESSION_ENDED])
def test_a_message_that_fails_three_times_goes_to_the_dead_letter_queue(aws: Aws, queue: str) -> None:
    sqs: Any = boto3.client("sqs")
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    assert aws.received(queue) == []
    sqs.send_message(QueueUrl=url, MessageBody='{"poison": 1}')
    for _ in range(3):
        assert sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)["Messages"]
    assert aws.received(queue) == []
    assert aws.received(f"{queue}-dlq") == [{"poison": 1}]


def test_the_secret_holds_the_key(aws: Aws) -> None:
    assert boto3.client("secretsmanager").get_secret_value(SecretId=MODEL_SECRET)["SecretString"] == "the key"


def test_mirrored_objects_come_back_with_their_events_after_a_restart(aws: Aws) -> None:
    s3: Any = boto3.client("s3")
    key = "tenant/ä" + "/long" * 200 + "/policy.md"
    s3.put_object(Bucket=BUCKET, Key=key, Body=b"\x00body", ContentType="text/markdown", Metadata={"name": "policy"})
    s3.put_object(Bucket=BUCKET, Key="removed.md", Body=b"")
    mirror = Mirror(aws.state)
    for name in (key, "removed.md"):
        mirror.save(name)
    mirror.remove("removed.md")

    aws.make()

    found = s3.get_object(Bucket=BUCKET, Key=key)
    assert (found["Body"].read(), found["ContentType"], found["Metadata"]) == (
        b"\x00body",
        "text/markdown",
        {"name": "policy"},
    )
    assert [name for name, _ in keys(aws.received(INGEST))] == ["ObjectCreated:Put"]
    assert [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET)["Contents"]] == [key]


def test_an_object_that_is_gone_before_it_is_mirrored_is_passed_over(aws: Aws) -> None:
    mirror = Mirror(aws.state)
    mirror.save("absent.md")
    assert mirror.restore() == 0
