"""The templates as data: CloudFormation's short forms become their long ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml

from infra.local.processes import CHECKOUT

FILES = ("template.yaml", *sorted(f"infra/{path.name}" for path in (CHECKOUT / "infra").glob("*.yaml")))


class Loader(yaml.SafeLoader):
    """Knows !Ref, !GetAtt and the like."""


def _long_form(loader: Loader, suffix: str, node: yaml.Node) -> Any:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        return {name: value.split(".", 1) if suffix == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}  # type: ignore[arg-type]


Loader.add_multi_constructor("!", _long_form)


@cache
def load(file: str = "template.yaml") -> dict[str, Any]:
    return yaml.load((CHECKOUT / file).read_text(), Loader)  # type: ignore[no-any-return]


def resources(kind: str, file: str = "template.yaml") -> dict[str, dict[str, Any]]:
    """Properties by logical id."""
    found = load(file)["Resources"].items()
    return {name: resource["Properties"] for name, resource in found if resource["Type"] == kind}


def functions() -> dict[str, dict[str, Any]]:
    return resources("AWS::Serverless::Function")


def role_of(function: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = load()["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]
    return properties


def statements(role: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of the role's own policies, also those that depend on a condition."""
    for policy in role["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            yield statement["Fn::If"][1] if "Fn::If" in statement else statement


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def walk(value: Any) -> Iterator[Any]:
    """Every dictionary and list inside."""
    yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from walk(part)
