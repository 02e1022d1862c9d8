"""Least privilege: each role allows what its function's code and its triggers need, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from infra.build.package import SERVICES
from infra.local.lambda_emulator import Function
from infra.local.processes import CHECKOUT
from tests.infra import template
from tests.infra.aws_actions import actions, is_client, tree

LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
RECEIVE = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}


def needed(name: str, function: dict[str, Any]) -> set[str]:
    """The actions of the code, of Lambda on the function's behalf, and those on the key that these entail."""
    found = actions(Function(name).handler.split(".")[1]) | LOGS
    triggers = function.get("Events", {}).values()
    if any(event["Type"] == "SQS" for event in triggers):
        found |= RECEIVE
    if "DestinationConfig" in function.get("EventInvokeConfig", {}):
        found |= {"sqs:SendMessage"}
    if found & {"s3:GetObject", "sqs:ReceiveMessage", "sqs:SendMessage"}:
        found |= {"kms:Decrypt"}
    if found & {"s3:PutObject", "sqs:SendMessage"}:
        found |= {"kms:GenerateDataKey"}
    return found


def allowed(function: dict[str, Any]) -> set[str]:
    statements = template.statements(template.role_of(function))
    return {action for statement in statements for action in template.as_list(statement["Action"])}


@pytest.mark.parametrize("name", template.functions())
def test_nothing_is_missing_and_nothing_is_unused(name: str) -> None:
    function = template.functions()[name]
    assert allowed(function) == needed(name, function)


def test_what_the_code_calls_is_found() -> None:
    """The derivation itself: a call behind a port, two classes away from the handler."""
    assert "bedrock:InvokeModelWithResponseStream" in actions("chat")
    assert "s3:DeleteObject" in actions("api")
    assert not {action for action in actions("sweep") if action.startswith(("bedrock:", "s3:"))}


@pytest.mark.parametrize("name", template.functions())
def test_the_roles_of_the_database(name: str) -> None:
    """Only what works across tenants may be octopus_sweep, and nobody signs in as the owner with a token."""
    statements = template.statements(template.role_of(template.functions()[name]))
    connects = [str(s["Resource"]) for s in statements if s["Action"] == "rds-db:connect"]
    users = {user for text in connects for user in re.findall(r"octopus_\w+", text)}
    extra = {"octopus_sweep"} if name in ("SweepFunction", "ReembedFunction") else set()
    assert users == (set() if name == "MigrateFunction" else {"octopus_app"} | extra)


@pytest.mark.parametrize("file", template.FILES)
def test_a_resource_that_is_everything_says_why(file: str) -> None:
    for number, line in enumerate((CHECKOUT / file).read_text().splitlines(), 1):
        if re.search(r"""Resource: *\[? *["']?\*""", line):
            assert re.search(r"# \S+ \S+", line), f"{file}:{number}: say in a comment why the resource is *"


@pytest.mark.parametrize("file", template.FILES)
def test_no_statement_allows_all_actions(file: str) -> None:
    for part in template.walk(template.load(file)):
        if isinstance(part, dict) and part.get("Effect") == "Allow":
            assert "NotAction" not in part
            assert not [action for action in template.as_list(part["Action"]) if action.endswith("*")]


def clients() -> set[str]:
    """The services that the code makes clients of."""
    modules = [path.relative_to(CHECKOUT / "shared") for path in (CHECKOUT / "shared" / "octopus").rglob("*.py")]
    names = [".".join(path.with_suffix("").parts) for path in modules]
    calls = [node for name in names for node in template_nodes(name) if is_client(node)]
    return {call.args[0].value for call in calls}


def template_nodes(module: str) -> list[Any]:
    import ast

    return list(ast.walk(tree(module)))


def test_botocore_keeps_the_services_that_are_used() -> None:
    assert clients() == SERVICES


def test_every_service_has_an_endpoint_in_the_network() -> None:
    endpoints = template.resources("AWS::EC2::VPCEndpoint", "infra/network.yaml").values()
    names = {endpoint["ServiceName"]["Fn::Sub"].rsplit(".", 1)[1] for endpoint in endpoints}
    assert names == clients() | {"cognito-idp"}  # for the issuer's keys
