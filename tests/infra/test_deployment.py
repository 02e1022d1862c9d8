"""The templates after the SAM transform, deployed to moto's CloudFormation as far as moto goes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.cloudformation.parsing import get_model_map

from infra.local.processes import CHECKOUT
from tests.infra import template

ARTIFACTS = "http://s3.amazonaws.com/artifacts/"

# What moto's CloudFormation does not make. When it learns one, this list must shrink.
UNKNOWN_TO_MOTO = {
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::Stage",
    "AWS::CloudWatch::Alarm",
    "AWS::Cognito::UserPool",
    "AWS::Cognito::UserPoolClient",
    "AWS::Cognito::UserPoolGroup",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Url",
    "AWS::RDS::DBCluster",
    "AWS::RDS::DBClusterParameterGroup",
    "AWS::RDS::DBProxy",
    "AWS::RDS::DBProxyTargetGroup",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
}
NETWORK = {"ModelProvider": "bedrock", "MakesIdentity": "true", "LambdaTools": "false", "ToolHosts": "[]"}
# Known to moto, but useless without what it does not know, or in need of Docker.
LEFT_OUT = {"AWS::RDS::DBInstance", "Custom::OctopusSchema"}
# Of the resources that it makes, moto leaves out the functions' architecture, and of the bucket the notifications, CORS
# rules, versioning and block of public access. NoValue inside a list becomes null.


@cache
def transformed(*parameters: str) -> Any:
    """The root template as CloudFormation gets it."""
    command = [CHECKOUT / ".venv-sam/bin/python", "tests/infra/sam_transform.py", "template.yaml", *parameters]
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1"}
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def for_moto(stack: dict[str, Any]) -> dict[str, Any]:
    """Without the resources that moto does not make, and with a word in the place of what referred to them."""
    gone = {name for name, r in stack["Resources"].items() if r["Type"] in UNKNOWN_TO_MOTO | LEFT_OUT}

    def replaced(value: Any) -> Any:
        match value:
            case {"Ref": "EventBus"}:
                return "octopus"  # moto takes the bus itself for its name, and stumbles over it
            case {"Ref": str(name)} if name in gone:
                return f"no-{name}"
            case {"Fn::GetAtt": [str(name), *_]} if name in gone:
                return f"no-{name}"
            case dict():
                return {key: replaced(part) for key, part in value.items()}
            case list():
                return [replaced(part) for part in value]
            case _:
                return value

    resources = {name: replaced(r) for name, r in stack["Resources"].items() if name not in gone}
    for resource in resources.values():
        if set(template.as_list(resource.get("DependsOn", []))) & gone:
            del resource["DependsOn"]
    return {**stack, "Resources": resources, "Outputs": replaced(stack.get("Outputs", {}))}


def test_what_moto_does_not_know_is_listed() -> None:
    stacks = [transformed(), *map(template.load, template.FILES[1:])]
    kinds = {resource["Type"] for stack in stacks for resource in stack["Resources"].values()}
    assert {kind for kind in kinds - LEFT_OUT if kind not in get_model_map()} == UNKNOWN_TO_MOTO


@pytest.fixture(scope="module")
def stack() -> Iterator[dict[str, str]]:
    """The deployed stack: physical ids by logical id."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        s3, cloudformation = boto3.client("s3"), boto3.client("cloudformation")
        s3.create_bucket(Bucket="artifacts")
        root = for_moto(transformed())
        for name in ("SharedLayer", *template.functions()):
            s3.put_object(Bucket="artifacts", Key=f"{name}.zip", Body=an_archive())
        for file in template.FILES[1:]:
            s3.put_object(Bucket="artifacts", Key=file, Body=json.dumps(for_moto(template.load(file)), default=str))
        s3.put_object(Bucket="artifacts", Key="root", Body=json.dumps(root))
        # moto cannot give a nested stack's outputs to its parent: the network is a stack of its own, and brought along.
        network = deploy("network", "infra/network.yaml", Environment="prod", **NETWORK)
        deploy(
            "octopus",
            "root",
            VpcId=network["VpcId"],
            SubnetIds=network["SubnetIds"],
            DatabaseHost="database.example",
            DatabaseResourceId="cluster-ABC",
            DatabaseOwnerSecretArn="arn:aws:secretsmanager:us-east-1:123456789012:secret:owner",
            JwtIssuer="https://issuer.example",
        )
        found = cloudformation.describe_stack_resources(StackName="octopus")["StackResources"]
        named = [resource for resource in found if "LogicalResourceId" in resource]
        yield {resource["LogicalResourceId"]: resource.get("PhysicalResourceId", "") for resource in named}


def deploy(name: str, key: str, **parameters: str) -> dict[str, str]:
    """Create the stack; its outputs."""
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(
        StackName=name,
        TemplateURL=f"{ARTIFACTS}{key}",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
    )
    (created,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    assert created["StackStatus"] == "CREATE_COMPLETE"
    return {output["OutputKey"]: output["OutputValue"] for output in created.get("Outputs", [])}


def an_archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("handler.py", "")
    return content.getvalue()


def test_everything_that_moto_knows_is_made(stack: dict[str, str]) -> None:
    conditional = {"Network", "Database", "Identity", "ChatVersion"}  # on parameters that are given otherwise here
    assert set(for_moto(transformed())["Resources"]) - set(stack) == conditional


@pytest.mark.parametrize("name", template.functions())
def test_functions(stack: dict[str, str], name: str) -> None:
    made = boto3.client("lambda").get_function_configuration(FunctionName=stack[name])
    assert made["Runtime"] == "python3.13"
    assert made["Role"].endswith(stack[f"{name.removesuffix('Function')}Role"])
    assert len(made["VpcConfig"]["SubnetIds"]) == 2
    variables = made["Environment"]["Variables"]
    assert variables["OCTOPUS_BUCKET"] == "octopus-documents-123456789012"
    assert variables["OCTOPUS_DATABASE_URL"].startswith("postgresql://octopus_app@")


def test_the_bucket_is_encrypted(stack: dict[str, str]) -> None:
    made = boto3.client("s3").get_bucket_encryption(Bucket=stack["DocumentBucket"])
    assert made["ServerSideEncryptionConfiguration"]["Rules"]


@pytest.mark.parametrize(
    ("queue", "failures", "receives"),
    [("CreatedQueue", "CreatedFailures", 8), ("RemovedQueue", "RemovedFailures", 5)],
)
def test_queues_have_dead_letters(stack: dict[str, str], queue: str, failures: str, receives: int) -> None:
    made = boto3.client("sqs").get_queue_attributes(QueueUrl=stack[queue], AttributeNames=["RedrivePolicy"])
    policy = json.loads(made["Attributes"]["RedrivePolicy"])
    assert policy["deadLetterTargetArn"].rsplit(":", 1)[1] == stack[failures].rsplit("/", 1)[1]
    assert int(policy["maxReceiveCount"]) == receives


def test_the_network_has_no_way_out(stack: dict[str, str]) -> None:
    ec2 = boto3.client("ec2")
    (vpc,) = ec2.describe_vpcs(Filters=[{"Name": "tag:project", "Values": ["octopus"]}])["Vpcs"]
    mine = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
    endpoints = {e["ServiceName"].rsplit(".", 1)[1] for e in ec2.describe_vpc_endpoints(Filters=mine)["VpcEndpoints"]}
    assert endpoints == {"s3", "bedrock-runtime", "events", "sqs", "secretsmanager", "cognito-idp"}
    assert ec2.describe_nat_gateways(Filters=mine)["NatGateways"] == []
    tables = ec2.describe_route_tables(Filters=mine)["RouteTables"]
    assert not [
        route for table in tables for route in table["Routes"] if route.get("DestinationCidrBlock") == "0.0.0.0/0"
    ]


def test_ended_sessions_reach_their_function(stack: dict[str, str]) -> None:
    events = boto3.client("events")
    (rule,) = events.list_rules(EventBusName="octopus")["Rules"]
    assert json.loads(rule["EventPattern"]) == {"source": ["octopus"], "detail-type": ["SessionEnded"]}
    (target,) = events.list_targets_by_rule(Rule=rule["Name"], EventBusName="octopus")["Targets"]
    assert target["Arn"].endswith(stack["EndSessionFunction"])
    assert target["RetryPolicy"]["MaximumRetryAttempts"] == 20
