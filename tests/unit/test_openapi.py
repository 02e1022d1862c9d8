"""The committed description of the API is that of its code, and is sound."""

from __future__ import annotations

import json
import re

from infra.local.openapi import FILE, describe, text


def test_it_has_not_drifted() -> None:
    assert FILE.read_text() == text(), "run `make openapi`"


def test_references_lead_somewhere() -> None:
    document = describe()
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document))):
        found = document
        for part in reference.split("/"):
            found = found[part]


def test_operations_have_names_of_their_own_and_problems() -> None:
    operations = [operation for methods in describe()["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) > 30
    assert all("default" in operation["responses"] for operation in operations)


def test_statuses_and_bodies_are_those_of_the_routes() -> None:
    paths = describe()["paths"]
    created = paths["/v1/agents"]["post"]["responses"]["201"]["content"]["application/json"]["schema"]
    assert created == {"$ref": "#/components/schemas/Agent"}
    assert "content" not in paths["/v1/agents/{agent_id}"]["delete"]["responses"]["204"]
