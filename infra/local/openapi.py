"""`make openapi`: the API's description, generated from its code into functions/api/openapi.json.

Powertools derives paths, parameters and bodies from the routes. What it cannot see is added here: the bearer token, the
problem documents, and the status that a route returns beside its result.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from pathlib import Path
from typing import Any

from functions.api.app import GROUPS, app
from infra.local.processes import CHECKOUT
from octopus.problem import CONTENT_TYPE

FILE = CHECKOUT / "functions" / "api" / "openapi.json"
DESCRIPTION = (
    "Agents with four memories. Streaming chat has the same body as POST /v1/chat here, at the chat function's own URL."
)
PROBLEM = {
    "type": "object",
    "description": "A problem document of RFC 9457.",
    "required": ["type", "title", "status", "detail", "retryable"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What to change."},
        "retryable": {"type": "boolean", "description": "Whether the same request may succeed later."},
        "field": {"type": ["string", "null"]},
    },
}


def describe() -> dict[str, Any]:
    """The OpenAPI document."""
    made = app.get_openapi_json_schema(title="Octopus", version="1", description=DESCRIPTION)
    document: dict[str, Any] = json.loads(made)
    del document["servers"]  # each deployment has its own
    operations = _functions()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            function = operations[method.upper(), path]
            operation["operationId"] = function.__name__
            operation["summary"] = inspect.getdoc(function) or function.__name__.replace("_", " ").capitalize()
            operation["responses"] = {
                str(_status(function)): _success(operation["responses"]["200"]),
                "default": {"$ref": "#/components/responses/Problem"},
            }
    components = document["components"]
    _drop_unused(document)
    components["schemas"]["Problem"] = PROBLEM
    components["responses"] = {
        "Problem": {
            "description": "Anything that went wrong.",
            "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    }
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
    document["security"] = [{"token": []}]
    return document


def write() -> None:
    """Bring the file up to date."""
    FILE.write_text(text())


def text() -> str:
    return json.dumps(describe(), indent=1, sort_keys=True) + "\n"


def _drop_unused(document: dict[str, Any]) -> None:
    """The schemas that only Powertools' own error responses referred to."""
    schemas = document["components"]["schemas"]
    while unused := [name for name in schemas if f'"#/components/schemas/{name}"' not in json.dumps(document)]:
        for name in unused:
            del schemas[name]


def _functions() -> dict[tuple[str, str], Any]:
    """The route's function by method and path, the path in OpenAPI's form."""
    found = {}
    for group in GROUPS:
        for route, function in group._routes.items():
            for method in route[1]:
                path = f"/v1{route[0]}".replace("<", "{").replace(">", "}")
                found[method, path] = function
    return found


def _status(function: Any) -> int:
    """The status in ``return result, 201``, or 200."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        match node:
            case ast.Return(ast.Tuple([_, ast.Constant(int(status))])):
                return status
    return 200


def _success(response: dict[str, Any]) -> dict[str, Any]:
    """The response without the status that the function returns beside its result."""
    for content in response.get("content", {}).values():
        items = content["schema"].get("prefixItems")
        if items:
            content["schema"] = items[0]
    if all(content["schema"].get("type") == "null" for content in response.get("content", {}).values()):
        return {"description": "Done; no content."}
    return {**response, "description": "Successful."}


if __name__ == "__main__":
    write()
    print(Path(FILE).relative_to(CHECKOUT))
