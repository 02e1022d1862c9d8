"""Every function that `sam build` made, run read-only by AWS's emulator, with the events of events/."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
import psycopg
import pytest

from infra.local.lambda_emulator import Emulated
from infra.local.workbench import Workbench
from tests.infra.conftest import EVENTS, OBJECT, event

pytestmark = pytest.mark.usefixtures("aws_of_the_bench")
Start = Callable[..., Emulated]
Database = psycopg.Connection[Any]

FUNCTION_OF = {  # by the beginning of an event's name
    "api-": "ApiFunction",
    "chat-url": "ChatFunction",
    "s3-object-created": "IngestDocumentFunction",
    "s3-object-removed": "RemoveDocumentFunction",
    "reembed-": "ReembedFunction",
    "scheduler-": "SweepFunction",
    "schema-": "MigrateFunction",
    "session-ended": "EndSessionFunction",
}


def one(database: Database, query: str) -> Any:
    row = database.execute(query.encode()).fetchone()
    return row and row[0]


def test_every_event_belongs_to_a_function() -> None:
    for path in EVENTS.glob("*.json"):
        assert [name for name in FUNCTION_OF if path.stem.startswith(name)], path.name


def test_migrations_run_on_create_and_answer_cloudformation(bench: Workbench, migrated: Database) -> None:
    assert bench.stand_ins.answers[0] == {
        "Status": "SUCCESS",
        "PhysicalResourceId": "octopus-schema",
        "StackId": event(bench, "schema-create")["StackId"],
        "RequestId": "9d3c1c2e-31d5-4f0c-9a35-6c1f4f7e0b8d",
        "LogicalResourceId": "Schema",
    }
    assert one(migrated, "select count(*) from schema_migrations") >= 1


def test_an_update_without_new_migrations_applies_none(bench: Workbench, start: Start, migrated: Database) -> None:
    assert start("MigrateFunction").invoke(event(bench, "schema-update")).payload == {"applied": []}
    assert bench.stand_ins.answers[-1]["Status"] == "SUCCESS"


def test_a_delete_keeps_the_schema(bench: Workbench, start: Start, migrated: Database) -> None:
    assert start("MigrateFunction").invoke(event(bench, "schema-delete")).payload == {"applied": []}
    assert bench.stand_ins.answers[-1]["Status"] == "SUCCESS"
    assert one(migrated, "select count(*) from agents") >= 1


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("api-list-agents", 200),
        ("api-create-agent", 201),
        ("api-chat", 200),
        ("api-upload-document", 201),
        ("api-no-token", 401),
        ("api-unknown-agent", 404),
    ],
)
def test_api(bench: Workbench, start: Start, migrated: Database, name: str, status: int) -> None:
    answer = start("ApiFunction").invoke(event(bench, name)).payload
    assert answer["statusCode"] == status, answer


def test_a_turn_through_the_api_is_in_the_log(bench: Workbench, start: Start, migrated: Database) -> None:
    invocation = start("ApiFunction").invoke(event(bench, "api-chat"))
    turn = json.loads(invocation.payload["body"])
    said = one(migrated, f"select string_agg(role, ' ' order by seq) from messages where turn_id = '{turn['turn_id']}'")
    assert said == "user assistant"


def test_a_document_is_indexed_and_removed(bench: Workbench, start: Start, migrated: Database) -> None:
    text = b"# Refunds\n\nA broken order is refunded within 14 days."
    boto3.client("s3").put_object(Bucket="octopus-documents", Key=OBJECT, Body=text)

    created = start("IngestDocumentFunction").invoke(event(bench, "s3-object-created"))
    assert created.payload == {"batchItemFailures": []}
    assert one(migrated, "select status from documents where file_name = 'Refund policy 2026.md'") == "indexed"
    assert one(migrated, "select count(*) from chunks") >= 1

    boto3.client("s3").delete_object(Bucket="octopus-documents", Key=OBJECT)
    removed = start("RemoveDocumentFunction").invoke(event(bench, "s3-object-removed"))
    assert removed.payload == {"batchItemFailures": []}
    assert one(migrated, "select count(*) from chunks") == 0


def test_a_message_that_cannot_be_handled_is_reported_alone(bench: Workbench, start: Start, migrated: Database) -> None:
    batch = event(bench, "s3-object-removed")
    batch["Records"].append({**batch["Records"][0], "messageId": "broken", "body": "{"})
    answer = start("RemoveDocumentFunction").invoke(batch).payload
    assert answer == {"batchItemFailures": [{"itemIdentifier": "broken"}]}


def test_an_ended_session_becomes_one_episode(bench: Workbench, start: Start, migrated: Database) -> None:
    first = start("EndSessionFunction").invoke(event(bench, "session-ended"))
    again = start("EndSessionFunction").invoke(event(bench, "session-ended"))
    assert first.payload == {"outcome": "written"}
    assert again.payload != first.payload
    assert one(migrated, "select count(*) from episodes") == 1
    assert first.lines[0]["correlation_id"] == "6a7e8feb-b491-4cf7-a9f1-bf3703467718"


def test_the_sweep_ends_what_is_idle(bench: Workbench, start: Start, migrated: Database) -> None:
    migrated.execute(
        """
        insert into conversations (tenant_id, conversation_id, agent_id, user_id, last_seq, last_message_at)
        values ('acme', gen_random_uuid(), '0d9b3a52-6c1f-4f7e-9a35-0b8d1f6c2e10', 'idle', 2, now() - interval '1 day')
        """
    )
    swept = start("SweepFunction").invoke(event(bench, "scheduler-sweep"))
    assert swept.payload["ended"] == 1
    assert one(migrated, "select end_reason from conversations where user_id = 'idle'") == "Timeout"


def test_the_embedding_model_is_changed_by_an_operators_events(
    bench: Workbench, start: Start, migrated: Database
) -> None:
    migrated.execute(
        """
        insert into embedding_spaces (model, dimensions, state) values ('amazon.titan-embed-text-v2:0', 1024, 'current')
        on conflict do nothing;
        insert into procedures (tenant_id, procedure_id, name, description, trigger_kind, trigger_pattern, steps,
                                status, created_by)
        values ('acme', '77777777-7777-4777-8777-777777777777', 'refund', 'Refunds an order.', 'phrases', 'zzz', '[]',
                'approved', 'root');
        insert into procedure_vectors (tenant_id, procedure_id, ordinal, space_id, embedding)
        values ('acme', '77777777-7777-4777-8777-777777777777', 0, current_space(),
                array_fill(0.1, array[1024])::vector)
        """
    )
    reembed = start("ReembedFunction")
    assert reembed.invoke(event(bench, "reembed-status")).payload["coming"] is None
    assert reembed.invoke(event(bench, "reembed-change")).payload["left"]["procedures"] == 1
    done = reembed.invoke(event(bench, "reembed-tick")).payload
    assert (done["current"], done["coming"]) == ("amazon.titan-embed-text-v2:0/512", None)
    dimensions = (
        "select array_agg(distinct vector_dims(embedding)) from procedure_vectors where space_id = current_space()"
    )
    assert one(migrated, dimensions) == [512]

    answer = start("ApiFunction").invoke(event(bench, "api-chat")).payload
    assert answer["statusCode"] == 200, answer


def test_no_log_line_holds_what_was_said(start: Start, migrated: Database) -> None:
    for name in ("ApiFunction", "EndSessionFunction", "IngestDocumentFunction"):
        text = start(name).log.read_text()
        for said in ("refund policy", "order 4711", "broken order", "You are Otto"):
            assert said.lower() not in text.lower(), name
