"""JSON schemas of tools."""

from __future__ import annotations

import time
from typing import Any

import pytest

from octopus.errors import InvalidInput
from octopus.tools.schema import check_arguments, check_schema
from octopus.tools.types import ArgumentsRefused

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z]"},
        "amount": {"$ref": "#/$defs/amount"},
        "parts": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"amount": {"type": "integer", "minimum": 1}},
}


def test_a_schema_that_stands_by_itself_is_taken() -> None:
    local = {**SCHEMA, "properties": {k: v for k, v in SCHEMA["properties"].items() if k != "parts"}}  # type: ignore[attr-defined]
    check_schema(local)
    check_arguments(local, {"name": "Acme", "amount": 3})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "string"}, "type object"),
        ({}, "type object"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "not a JSON schema"),
        ({"type": "object", "required": "a"}, "not a JSON schema"),
        ({"type": "object", "properties": {"a": {"$ref": "http://169.254.169.254/x"}}}, "begin with #/"),
        ({"type": "object", "$ref": "file:///etc/passwd"}, "begin with #/"),
        ({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "without end"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}, "RE2"),
        ({"type": "object", "patternProperties": {"^a": {}}}, "patternProperties"),
        ({"type": "object", "description": "x" * 20_001}, "characters"),
    ],
)
def test_other_schemas_are_refused(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        check_schema(schema)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "'name' is a required property"),
        ({"name": 3}, r"\$.name: 3 is not of type 'string'"),
        ({"name": "acme"}, r"\$.name: 'acme' does not match"),
        ({"name": "A", "amount": 0}, r"\$.amount: 0 is less than"),
        ({"name": "A", "tenant_id": "other"}, "'tenant_id' was unexpected"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_reason(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentsRefused, match=told):
        check_arguments(SCHEMA, arguments)


def test_a_pattern_of_a_schema_cannot_hang_the_call() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    check_schema(schema)
    began = time.thread_time()
    with pytest.raises(ArgumentsRefused):
        check_arguments(schema, {"a": "a" * 10_000 + "!"})
    assert time.thread_time() - began < 1
