"""What S3 says, in AWS's form and in moto's, and our own messages on the same queue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from octopus.errors import InvalidInput
from octopus.semantic.notification import ObjectEvent, read_message

EVENTS = Path(__file__).parents[2] / "events"
KEY = "acme/0d9b3a52-6c1f-4f7e-9a35-0b8d1f6c2e10/5f0f7c1c-9d0b-4f43-8f0a-7a2f7c3f6b11/Refund_policy_2026.md"


@pytest.mark.parametrize(
    ("file", "kind"), [("s3-object-created.json", "created"), ("s3-object-removed.json", "removed")]
)
def test_the_form_of_aws(file: str, kind: str) -> None:
    (record,) = json.loads((EVENTS / file).read_text())["Records"]
    (event,) = read_message(record["body"])
    assert (event.kind, event.key) == (kind, KEY)
    assert event.sequencer
    assert len(event.sequencer) == 64


def test_the_form_of_moto_has_no_sequencer_and_an_encoded_key() -> None:
    body = {"Records": [{"eventName": "ObjectCreated:Post", "s3": {"object": {"key": "a%2Fb+c/%C3%A4.md"}}}]}
    assert read_message(json.dumps(body)) == [ObjectEvent("created", "a/b c/ä.md", None)]


def test_sequencers_of_unequal_length_compare_as_if_padded() -> None:
    def sequencer(digits: str) -> str:
        body = {"Records": [{"eventName": "ObjectCreated:Put", "s3": {"object": {"key": "k", "sequencer": digits}}}]}
        return str(read_message(json.dumps(body))[0].sequencer)

    assert sequencer("0055AED6DCD90281E5") < sequencer("0055AED6DCD90281E51")
    assert sequencer("0055AED6DCD90281E5") == sequencer("0055aed6dcd90281e500")


def test_the_test_message_and_other_kinds_are_nothing() -> None:
    assert read_message('{"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}') == []
    body = {"Records": [{"eventName": "ObjectTagging:Put", "s3": {"object": {"key": "k"}}}]}
    assert read_message(json.dumps(body)) == []


def test_a_wish_to_index_anew() -> None:
    assert read_message('{"ingest": "a/b/c/d", "anew": true}') == [ObjectEvent("created", "a/b/c/d", anew=True)]


@pytest.mark.parametrize("body", ["", "hello", "[]", "{}", '{"Records": [{}]}', '{"Records": 1}', "null"])
def test_anything_else_is_an_error(body: str) -> None:
    with pytest.raises(InvalidInput):
        read_message(body)
