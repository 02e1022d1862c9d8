"""Rules that the templates follow, and what they must agree with elsewhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from infra.local import costs
from infra.local.lambda_emulator import CHAT, Function
from infra.local.processes import CHECKOUT
from octopus.settings import Settings
from tests.infra import template


def faults(root: dict[str, Any], operations: dict[str, Any]) -> Iterator[str]:
    """What an asynchronous function lacks of: a log group that forgets, a queue for failures, an alarm for each."""
    resources, watched = root["Resources"], alarms(root, operations)
    for name, resource in resources.items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        properties = resource["Properties"]
        group = resources.get(properties.get("LoggingConfig", {}).get("LogGroup", {}).get("Ref"), {})
        if "RetentionInDays" not in group.get("Properties", {}):
            yield f"{name} has no log group with a retention"
        if not is_asynchronous(properties):
            continue
        if ("AWS/Lambda", "Errors", name) not in watched:
            yield f"{name} has no alarm for errors"
        queues = failure_queues(properties, resources)
        if not queues:
            yield f"{name} has no queue for what failed"
        for queue in queues:
            if ("AWS/SQS", "ApproximateNumberOfMessagesVisible", queue) not in watched:
                yield f"{queue} has no alarm"


def is_asynchronous(function: dict[str, Any]) -> bool:
    kinds = {event["Type"] for event in function.get("Events", {}).values()}
    return bool(kinds & {"SQS", "EventBridgeRule", "ScheduleV2"}) or "EventInvokeConfig" in function


def failure_queues(function: dict[str, Any], resources: dict[str, Any]) -> set[str]:
    """Queues that take what the function could not do."""
    found = set()
    on_failure = function.get("EventInvokeConfig", {}).get("DestinationConfig", {}).get("OnFailure", {})
    targets = [on_failure.get("Destination")]
    for event in function.get("Events", {}).values():
        properties = event["Properties"]
        targets.append(properties.get("DeadLetterConfig", {}).get("Arn"))
        if event["Type"] == "SQS":
            queue = resources[properties["Queue"]["Fn::GetAtt"][0]]["Properties"]
            targets.append(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
    for target in targets:
        if target:
            found.add(target["Fn::GetAtt"][0])
    return found


def alarms(root: dict[str, Any], operations: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Namespace, metric and the root's resource that each alarm watches."""
    given = root["Resources"]["Operations"]["Properties"]["Parameters"]
    found = set()
    for resource in operations["Resources"].values():
        if resource["Type"] == "AWS::CloudWatch::Alarm":
            alarm = resource["Properties"]
            assert alarm["AlarmActions"]
            for dimension in alarm["Dimensions"]:
                value = given.get(dimension["Value"].get("Ref")) if isinstance(dimension["Value"], dict) else None
                if isinstance(value, dict):
                    target = value.get("Ref") or value.get("Fn::GetAtt", [""])[0]
                    found.add((alarm["Namespace"], alarm["MetricName"], target))
    return found


def test_asynchronous_functions_have_logs_dead_letters_and_alarms() -> None:
    assert list(faults(template.load(), template.load("infra/operations.yaml"))) == []


@pytest.mark.parametrize(
    ("break_it", "fault"),
    [
        (lambda root, _: root["ChatLogs"]["Properties"].pop("RetentionInDays"), "ChatFunction has no log group"),
        (lambda _, watch: watch.pop("SweepErrors"), "SweepFunction has no alarm"),
        (lambda _, watch: watch.pop("CreatedFailuresArrived"), "CreatedFailures has no alarm"),
        (
            lambda root, _: root["CreatedQueue"]["Properties"].pop("RedrivePolicy"),
            "IngestDocumentFunction has no queue",
        ),
    ],
)
def test_a_planted_fault_is_found(break_it: Any, fault: str) -> None:
    root, operations = deepcopy(template.load()), deepcopy(template.load("infra/operations.yaml"))
    break_it(root["Resources"], operations["Resources"])
    assert [found for found in faults(root, operations) if found.startswith(fault)]


def test_variables_are_settings() -> None:
    """A misspelt variable would be ignored in silence."""
    variables = set(template.load()["Globals"]["Function"]["Environment"]["Variables"])
    for function in template.functions().values():
        variables |= set(function.get("Environment", {}).get("Variables", {}))
    mine = {name for name in variables if name.startswith("OCTOPUS_")}
    known = {f"OCTOPUS_{name.upper()}" for name in Settings.model_fields}
    assert mine <= known
    fields = Settings.model_fields.items()
    needed = {name for name, field in fields if field.default is None and not field.validation_alias}
    assert {f"OCTOPUS_{name.upper()}" for name in needed} <= mine


@pytest.mark.parametrize("name", template.functions())
def test_handlers_follow_the_functions_name(name: str) -> None:
    handler = template.functions()[name]["Handler"]
    assert handler == ("run.sh" if name == CHAT else Function(name).handler)


@pytest.mark.parametrize("name", [CHAT, "ApiFunction"])
def test_a_turn_ends_before_its_function_does(name: str) -> None:
    function = template.functions()[name]
    longest = function["Environment"]["Variables"].get(
        "OCTOPUS_TURN_MAX_S", Settings.model_fields["turn_max_s"].default
    )
    assert function.get("Timeout", template.load()["Globals"]["Function"]["Timeout"]) > int(longest)


@pytest.mark.parametrize("name", ["IngestDocumentFunction", "RemoveDocumentFunction"])
def test_a_message_stays_hidden_for_six_timeouts(name: str) -> None:
    function = template.functions()[name]
    (event,) = function["Events"].values()
    queue = template.resources("AWS::SQS::Queue")[event["Properties"]["Queue"]["Fn::GetAtt"][0]]
    assert queue["VisibilityTimeout"] >= 6 * function["Timeout"]
    assert event["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_metrics_on_alarms_and_dashboard_are_published() -> None:
    code = "".join(
        path.read_text() for base in ("shared/octopus", "functions") for path in (CHECKOUT / base).rglob("*.py")
    )
    published = re.findall(r'add_metric\(f?"([\w.]+)', code)
    operations = template.load("infra/operations.yaml")["Resources"]
    shown = re.findall(
        r'"(?:Octopus|\.)", "([\w.]+)", "service"', operations["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    )
    watched = [
        alarm["Properties"]["MetricName"]
        for alarm in operations.values()
        if alarm["Properties"].get("Namespace") == "Octopus"
    ]
    assert len(shown) > 10
    for metric in shown + watched:
        assert any(metric == name or (name[-1] in "._" and metric.startswith(name)) for name in published), metric


def test_origins_cannot_be_everybody() -> None:
    origins = template.load()["Parameters"]["AllowedOrigins"]
    assert not re.match(origins["AllowedPattern"], "*")
    assert not re.match(origins["AllowedPattern"], "https://*")
    (url,) = template.resources("AWS::Lambda::Url").values()
    assert url["Cors"]["AllowCredentials"] is False


def test_a_public_url_is_admitted_in_both_ways() -> None:
    permissions = template.resources("AWS::Lambda::Permission").values()
    assert {permission["Action"] for permission in permissions} == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}


def test_no_function_url_is_behind_an_alias_of_sam() -> None:
    """SAM's alias stays on its version when only a parameter or the layer changes: the new code would not be live."""
    assert [name for name, function in template.functions().items() if "AutoPublishAlias" in function] == [
        "MigrateFunction"
    ]


@pytest.mark.parametrize("file", template.FILES)
def test_lint_is_not_silenced(file: str) -> None:
    assert "cfn-lint" not in (CHECKOUT / file).read_text()


@pytest.mark.parametrize("environment", ["default", "prod"])
def test_samconfig_sets_parameters_that_exist(environment: str) -> None:
    config = tomllib.loads((CHECKOUT / "samconfig.toml").read_text())
    overrides = config[environment]["deploy"]["parameters"]["parameter_overrides"].split()
    assert {pair.split("=")[0] for pair in overrides} <= set(template.load()["Parameters"])


def test_the_bucket_is_private_and_tells_of_objects() -> None:
    (bucket,) = template.resources("AWS::S3::Bucket").values()
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    told = {
        tell["Event"]: tell["Queue"]["Fn::GetAtt"][0]
        for tell in bucket["NotificationConfiguration"]["QueueConfigurations"]
    }
    assert told == {"s3:ObjectCreated:*": "CreatedQueue", "s3:ObjectRemoved:*": "RemovedQueue"}
    (policy,) = template.resources("AWS::S3::BucketPolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_the_cost_page_is_that_of_its_inputs() -> None:
    assert costs.PAGE.read_text() == costs.page(), "run `make costs`"


def test_the_idle_month_counts_what_the_templates_make() -> None:
    inputs = tomllib.loads(costs.INPUTS.read_text())["idle"]
    made = template.load("infra/network.yaml")["Resources"].values()
    endpoints = [resource for resource in made if resource["Type"] == "AWS::EC2::VPCEndpoint"]
    always = [
        endpoint
        for endpoint in endpoints
        if endpoint["Properties"]["VpcEndpointType"] == "Interface" and endpoint.get("Condition") != "HasLambdaTools"
    ]
    assert inputs["dev"]["endpoints"] == inputs["prod"]["endpoints"] == len(always)
    assert inputs["alarms"] == len(template.resources("AWS::CloudWatch::Alarm", "infra/operations.yaml"))
