"""The endpoints of knowledge and the functions behind the bucket, through their Lambda handlers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import boto3
import httpx2
import pytest

from functions.api.handler import handler as api
from functions.ingest_document.handler import handler as ingest_document
from functions.remove_document.handler import handler as remove_document
from infra.local.lambda_runtime import LambdaContext
from octopus.cloud import index_queue
from octopus.cloud.runtime import run
from octopus.cloud.wiring import services
from octopus.errors import Unavailable
from octopus.identity import Principal, Role
from octopus.settings import settings
from tests.conftest import DatabaseUrls
from tests.support.aws import moto_server
from tests.support.embedder import WordEmbedder

GUIDE = b"# Refunds\n\nRefunds are granted within thirty days of purchase.\n"
NOBODYS = "00000000-0000-4000-8000-000000000000"  # no document has this id


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with moto_server() as address:
        yield address


class AnyToken:
    """Takes the Authorization header for `tenant/user/role`."""

    async def verify(self, authorization: str | None) -> Principal:
        tenant, user, *roles = str(authorization).split("/")
        return Principal(tenant, user, frozenset(Role(role) for role in roles))


@dataclass
class Stack:
    """The functions, with the queue's messages delivered by hand."""

    bucket: str
    queue_url: str
    agent_id: UUID

    def call(self, method: str, path: str, body: Any = None, token: str = "acme/ada/OctopusAdmin") -> tuple[int, Any]:
        event = {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": "",
            "headers": {"authorization": token, "content-type": "application/json"},
            "requestContext": {"http": {"method": method, "path": path}, "requestId": "r", "stage": "$default"},
            "body": None if body is None else json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = api(event, LambdaContext("api"))
        return answer["statusCode"], json.loads(answer["body"]) if answer.get("body") else None

    @property
    def documents(self) -> str:
        return f"/v1/agents/{self.agent_id}/documents"

    def deliver(self) -> None:
        """Give every waiting message to the function that it is for."""
        sqs: Any = boto3.client("sqs")
        while messages := sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10).get("Messages"):
            records = [{"messageId": m["MessageId"], "body": m["Body"], "eventSource": "aws:sqs"} for m in messages]
            for function in (ingest_document, remove_document):
                assert function({"Records": records}, LambdaContext("f")) == {"batchItemFailures": []}
            for message in messages:
                sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])

    def upload(self, name: str, content: bytes) -> str:
        status, announced = self.call("POST", self.documents, {"file_name": name})
        assert status == 201
        form = announced["upload"]
        httpx2.post(form["url"], data=form["fields"], files={"file": content}).raise_for_status()
        document_id: str = announced["document"]["document_id"]
        return document_id


@pytest.fixture
def stack(aws: str, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws)
    sqs: Any = boto3.client("sqs")
    s3: Any = boto3.client("s3")
    queue_url = sqs.create_queue(QueueName=f"q-{uuid4().hex}")["QueueUrl"]
    queue_arn = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    bucket = f"b-{uuid4().hex}"
    s3.create_bucket(Bucket=bucket)
    events = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]
    notification = {"QueueConfigurations": [{"QueueArn": queue_arn, "Events": events}]}
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=notification)
    monkeypatch.setenv("OCTOPUS_DATABASE_URL", database_urls.app)
    monkeypatch.setenv("OCTOPUS_BUCKET", bucket)
    monkeypatch.setenv("OCTOPUS_INGEST_QUEUE_URL", queue_url)
    monkeypatch.setenv("OCTOPUS_EVENT_BUS", "default")
    monkeypatch.setenv("OCTOPUS_UPLOAD_MAX_BYTES", "10000")
    services.cache_clear()
    settings.cache_clear()
    vars(services()).update(embedder=WordEmbedder(), verifier=AnyToken())
    admin = Principal("acme", "ada", frozenset({Role.ADMIN}))
    agent = run(services().agents.create(admin, name="aria", system_prompt="You are Aria."))
    yield Stack(bucket, queue_url, agent.agent_id)
    run(services().database.close())
    services().document_reader.close()
    services.cache_clear()


def test_a_document_from_upload_to_search_to_deletion(stack: Stack) -> None:
    document_id = stack.upload("Refund policy (2026).md", GUIDE)
    status, document = stack.call("GET", f"{stack.documents}/{document_id}")
    assert (status, document["status"]) == (200, "pending")

    stack.deliver()

    status, listed = stack.call("GET", stack.documents)
    assert [(d["document_id"], d["status"], d["chunk_count"]) for d in listed] == [(document_id, "indexed", 1)]
    search = {"query": "refunds within thirty days", "min_score": 0.3}
    status, found = stack.call("POST", f"/v1/agents/{stack.agent_id}/knowledge/search", search)
    assert status == 200
    assert [chunk["file_name"] for chunk in found["chunks"]] == ["Refund policy (2026).md"]
    assert found["chunks"][0]["score"]["relevance"] >= 0.3

    assert stack.call("DELETE", f"{stack.documents}/{document_id}") == (204, None)
    stack.deliver()
    assert stack.call("GET", f"{stack.documents}/{document_id}")[0] == 404
    assert boto3.client("s3").list_objects_v2(Bucket=stack.bucket)["KeyCount"] == 0
    assert stack.call("POST", f"/v1/agents/{stack.agent_id}/knowledge/search", search)[1]["chunks"] == []


def test_the_same_name_takes_the_next_version(stack: Stack) -> None:
    first = stack.upload("guide.md", GUIDE)
    stack.deliver()
    second = stack.upload("guide.md", b"Nothing is refunded.")
    assert second == first
    stack.deliver()
    search = {"query": "nothing is refunded", "min_score": 0.0, "top_k": 10}
    _, found = stack.call("POST", f"/v1/agents/{stack.agent_id}/knowledge/search", search)
    assert [chunk["content"] for chunk in found["chunks"]] == ["Nothing is refunded."]


def test_reindexing_reads_the_document_again(stack: Stack) -> None:
    document_id = stack.upload("guide.md", GUIDE)
    stack.deliver()
    before = stack.call("GET", f"{stack.documents}/{document_id}")[1]["indexed_at"]
    assert stack.call("PATCH", f"{stack.documents}/{document_id}/reindex")[0] == 202
    stack.deliver()
    after = stack.call("GET", f"{stack.documents}/{document_id}")[1]["indexed_at"]
    assert after > before
    assert stack.call("GET", f"{stack.documents}/{document_id}")[1]["status"] == "indexed"


def test_all_documents_of_an_agent_are_indexed_anew(stack: Stack) -> None:
    assert stack.call("GET", f"{stack.documents}/reindex-all")[0] == 404
    for i in range(7):
        stack.upload(f"{i}.md", GUIDE + str(i).encode())
    broken = stack.upload("broken.md", b" ")
    stack.deliver()
    before = {d["document_id"]: d["indexed_at"] for d in stack.call("GET", stack.documents)[1]}

    status, job = stack.call("POST", f"{stack.documents}/reindex-all")
    assert (status, job["total"], job["remaining"]) == (202, 8, 8)
    stack.deliver()

    status, job = stack.call("GET", f"{stack.documents}/reindex-all")
    assert (status, job["total"], job["remaining"], job["failed"]) == (200, 8, 0, 1)
    for document in stack.call("GET", stack.documents)[1]:
        if document["document_id"] != broken:
            assert document["indexed_at"] > before[document["document_id"]]


@pytest.mark.parametrize(("received", "comes_again"), [(1, True), (2, False)])
def test_what_failed_for_want_of_a_service_is_tried_again_soon_and_then_later(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, received: int, comes_again: bool
) -> None:
    """After no time at all the first time, here; the second time after an hour."""

    async def embed(_: object) -> None:
        raise Unavailable("The embedding model does not answer; retry.")

    stack.upload("guide.md", GUIDE)
    sqs: Any = boto3.client("sqs")
    wait = {"QueueUrl": stack.queue_url, "MaxNumberOfMessages": 10, "VisibilityTimeout": 1_800}
    [message] = [m for m in sqs.receive_message(**wait)["Messages"] if "ObjectCreated" in m["Body"]]
    record = {
        "messageId": "m",
        "body": message["Body"],
        "receiptHandle": message["ReceiptHandle"],
        "attributes": {"ApproximateReceiveCount": str(received)},
        "eventSource": "aws:sqs",
    }
    monkeypatch.setattr(services().embedder, "embed", embed)
    monkeypatch.setattr(index_queue, "FIRST_RETRY_S", 0 if comes_again else 900)
    assert ingest_document({"Records": [record]}, LambdaContext("f"))["batchItemFailures"]
    assert ("Messages" in sqs.receive_message(**wait)) == comes_again
    [listed] = stack.call("GET", stack.documents)[1]
    assert listed["status"] == "pending"
    assert "does not answer" in listed["failure_reason"]


def test_a_lane_that_is_delivered_again_goes_on_with_its_document(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies in the middle of a document; the other documents are not held up."""
    for i in range(3):
        stack.upload(f"{i}.md", GUIDE + str(i).encode())
    stack.deliver()
    stack.call("POST", f"{stack.documents}/reindex-all")
    sqs: Any = boto3.client("sqs")
    messages = sqs.receive_message(QueueUrl=stack.queue_url, MaxNumberOfMessages=10, VisibilityTimeout=0)["Messages"]
    dying = {"messageId": "dying", "body": messages[0]["Body"], "eventSource": "aws:sqs"}
    with monkeypatch.context() as patched:
        patched.setattr(services().embedder, "embed", None)
        patched.setattr(services().knowledge_store, "publish", None)
        answer = ingest_document({"Records": [dying]}, LambdaContext("ingest_document"))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "dying"}]}
    assert stack.call("GET", f"{stack.documents}/reindex-all")[1]["remaining"] == 3
    stack.deliver()
    assert stack.call("GET", f"{stack.documents}/reindex-all")[1]["remaining"] == 0


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "documents"),
        ("GET", "documents"),
        ("GET", f"documents/{NOBODYS}"),
        ("DELETE", f"documents/{NOBODYS}"),
        ("PATCH", f"documents/{NOBODYS}/reindex"),
        ("POST", "documents/reindex-all"),
        ("POST", "knowledge/search"),
    ],
)
def test_only_administrators_of_the_tenant_get_anywhere(stack: Stack, method: str, path: str) -> None:
    body = {"documents": {"file_name": "a.md"}, "knowledge/search": {"query": "a"}}.get(path)
    path = f"/v1/agents/{stack.agent_id}/{path}"
    body = body if method == "POST" else None
    assert stack.call(method, path, body, token="acme/bob")[0] == 403
    status, answer = stack.call(method, path, body, token="other/eve/OctopusAdmin")
    assert status == 404, answer


def test_another_tenants_document_is_not_found(stack: Stack) -> None:
    document_id = stack.upload("guide.md", GUIDE)
    for method, path in (("GET", ""), ("DELETE", ""), ("PATCH", "/reindex")):
        status, _ = stack.call(method, f"{stack.documents}/{document_id}{path}", token="other/eve/OctopusAdmin")
        assert status == 404
    stack.deliver()
    assert stack.call("GET", f"{stack.documents}/{document_id}")[1]["status"] == "indexed"


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"file_name": "picture.png"}, 422, ".md"),
        ({"file_name": ""}, 422, "file_name"),
        ({"file_name": "a\u0000.md"}, 422, "NUL"),
        ({"file_name": "a.md", "size_bytes": 10001}, 413, "10000"),
        ({"file_name": "a.md", "size_bytes": 0}, 422, "size_bytes"),
        ({"file_name": "a.md", "tenant_id": "other"}, 422, "tenant_id"),
    ],
)
def test_what_cannot_be_announced(stack: Stack, body: dict[str, Any], status: int, word: str) -> None:
    answer = stack.call("POST", stack.documents, body)
    assert answer[0] == status
    assert word in answer[1]["detail"]
    assert stack.call("GET", stack.documents)[1] == []


def test_the_form_lets_the_bucket_refuse_other_keys_types_and_sizes(stack: Stack) -> None:
    """moto does not enforce the policy; S3 does."""
    _, announced = stack.call("POST", stack.documents, {"file_name": "a.md"})
    policy = json.loads(base64.b64decode(announced["upload"]["fields"]["policy"]))
    key = announced["document"]["object_key"]
    for condition in ({"Content-Type": "text/markdown"}, ["content-length-range", 1, 10000], {"key": key}):
        assert condition in policy["conditions"]


def test_a_message_that_fails_is_delivered_again_and_others_are_not(stack: Stack) -> None:
    stack.upload("guide.md", GUIDE)
    sqs: Any = boto3.client("sqs")
    messages = sqs.receive_message(QueueUrl=stack.queue_url, MaxNumberOfMessages=10)["Messages"]
    bodies = {**{str(i): message["Body"] for i, message in enumerate(messages)}, "bad": "not JSON"}
    records = [{"messageId": name, "body": body, "eventSource": "aws:sqs"} for name, body in bodies.items()]
    answer = ingest_document({"Records": records}, LambdaContext("ingest_document"))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "bad"}]}
    assert [d["status"] for d in stack.call("GET", stack.documents)[1]] == ["indexed"]
