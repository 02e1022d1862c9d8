"""JSON schemas of tools: what may be registered, and whether a call fits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import re2
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import SchemaError, best_match

from octopus.errors import InvalidInput
from octopus.tools.types import ArgumentsRefused

MAX_SCHEMA_CHARS = 20_000
_ENDLESS = "refers to itself without end"


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for anything but a JSON schema (draft 2020-12) of an object that stands by itself."""
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
        raise _refusal(f"is longer than {MAX_SCHEMA_CHARS} characters")
    if schema.get("type") != "object":
        raise _refusal("must have the type object at its top")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise _refusal(f"is not a JSON schema: {error.message[:500]}") from error
    for keyword, value in _keywords(schema):
        if keyword == "patternProperties":
            raise _refusal("has patternProperties, which are not supported")
        if keyword in ("$ref", "$dynamicRef") and not str(value).startswith("#/"):
            raise _refusal(f"refers to {value}; only references that begin with #/ are followed")
        if keyword == "pattern" and isinstance(value, str):
            _check_pattern(value)
    try:
        _validator(schema).is_valid({})
    except RecursionError as error:
        raise _refusal(_ENDLESS) from error


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise `ArgumentsRefused`, saying what does not fit, so that the model can correct itself."""
    try:
        error = best_match(_validator(schema).iter_errors(arguments))
    except RecursionError as exc:
        raise ArgumentsRefused(f"The arguments cannot be checked: the schema {_ENDLESS}.") from exc
    if error is not None:
        raise ArgumentsRefused(f"The arguments do not fit the schema: at {error.json_path}: {error.message[:500]}.")


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    """The keyword ``pattern`` in linear time: jsonschema's own uses `re`, which a schema can hang."""
    if validator.is_type(instance, "string") and not re2.search(pattern, instance, _quiet()):
        yield ValidationError(f"{instance[:100]!r} does not match {pattern!r}")


_Validator = validators.extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]


def _validator(schema: Mapping[str, Any]) -> Any:
    return _Validator(schema)


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, Mapping):
        yield from schema.items()
    for part in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from _keywords(part)


def _check_pattern(pattern: str) -> None:
    try:
        re2.compile(pattern, _quiet())
    except re2.error as error:
        raise _refusal(f"has the pattern {pattern[:100]!r}, which RE2 does not take: {error.args[0]!r}") from error


def _quiet() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


def _refusal(reason: str) -> InvalidInput:
    return InvalidInput(f"input_schema: {reason}.", field="input_schema")
