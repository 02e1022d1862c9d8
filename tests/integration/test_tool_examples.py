"""The guide to writing tools: its documents are what is sent, and its examples run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import boto3
import httpx2
import pytest

from functions.api.tools import NewTool
from octopus.answer import MAX_ROUNDS
from octopus.cloud.tool_targets import MAX_ANSWER_BYTES, ToolEndpoints
from octopus.recall import Scope
from octopus.settings import Settings
from octopus.tools.registry import MAX_TOOLS
from octopus.tools.schema import check_arguments, check_schema
from octopus.tools.toolbox import TIMEOUT_S, payload
from octopus.tools.types import HttpsTarget, Occasion, ToolCall, ToolFailed
from tests.support.aws import moto_server
from tests.support.endpoint import HOST, Received, listening, response, trusting

GUIDE = (Path(__file__).parents[2] / "shared/octopus/tools/README.md").read_text()
TOOL, PAYLOAD = map(json.loads, re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL))
FUNCTION, ENDPOINT = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
UNKNOWN = PAYLOAD | {"arguments": {"name": "Initech"}}
OF_ANOTHER = PAYLOAD | {"context": PAYLOAD["context"] | {"tenant_id": "umbrella"}}


def run(source: str, name: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(source, "README.md", "exec"), namespace)
    return namespace[name]


def test_the_documents_are_what_is_taken_and_sent() -> None:
    tool = NewTool.model_validate(TOOL)
    check_schema(tool.input_schema)
    check_arguments(tool.input_schema, PAYLOAD["arguments"])
    context = PAYLOAD["context"]
    scope = Scope(context["tenant_id"], context["user_id"], UUID(context["agent_id"]))
    occasion = Occasion(UUID(context["conversation_id"]), UUID(context["turn_id"]))
    assert payload(scope, occasion, ToolCall(context["call_id"], tool.name, PAYLOAD["arguments"])) == PAYLOAD


def test_the_limits_are_those_that_hold() -> None:
    cap = Settings.model_fields["tool_result_max_tokens"].default
    for stated in (
        f"{TIMEOUT_S:g} seconds",
        f"{MAX_ANSWER_BYTES >> 20} MiB",
        f"| {cap:,} ",
        f"| {MAX_ROUNDS} in",
        f"| {MAX_TOOLS} for",
    ):
        assert stated in GUIDE


async def test_the_function_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = run(FUNCTION, "handler")

    async def as_lambda_does(received: Received) -> bytes:
        try:
            return response(json.dumps(handler(received.body, None)).encode())
        except LookupError as error:
            return response(json.dumps({"errorMessage": str(error)}).encode(), X_Amz_Function_Error="Unhandled")

    async with listening() as service:
        service.answer = as_lambda_does
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{service.port}")
        tools = ToolEndpoints(function_prefix="octopus-tool-", hosts=[], secrets_prefix="octopus/tools")

        async def call(sent: Mapping[str, Any]) -> str:
            return await tools.invoke("globex", NewTool.model_validate(TOOL).target, sent)

        assert json.loads(await call(PAYLOAD)) == {"number": 4711, "status": "approved"}
        for sent, name in ((UNKNOWN, "Initech"), (OF_ANOTHER, "Acme")):
            with pytest.raises(ToolFailed, match=f"There is no vendor named {name}"):
                await call(sent)


async def test_the_endpoint_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_SECRET", "s3cret")
    app = httpx2.ASGITransport(run(ENDPOINT, "app"))

    async def through_the_app(received: Received) -> bytes:
        async with httpx2.AsyncClient(transport=app, base_url="https://tools.example.com") as client:
            said = await client.post(received.path, json=received.body, headers=received.headers)
        return response(said.content, f"{said.status_code} {said.reason_phrase}")

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with listening(tls=True) as service:
        service.answer = through_the_app
        tools = ToolEndpoints(
            function_prefix="",
            hosts=[f"{HOST}:{service.port}"],
            secrets_prefix="octopus/tools",
            resolve=resolve,
            is_public=lambda address: True,
            tls=trusting(),
        )

        async def call(sent: Mapping[str, Any], secret: str | None = "crm") -> str:
            url = f"https://{HOST}:{service.port}/find-vendor"
            return await tools.invoke("globex", HttpsTarget(kind="https", url=url, secret=secret), sent)

        with moto_server() as address:
            monkeypatch.setenv("AWS_ENDPOINT_URL", address)
            boto3.client("secretsmanager").create_secret(Name="octopus/tools/globex/crm", SecretString="s3cret")
            assert json.loads(await call(PAYLOAD)) == {"number": 4711, "status": "approved"}
            with pytest.raises(ToolFailed, match="status 404: There is no vendor named Initech"):
                await call(UNKNOWN)
            with pytest.raises(ToolFailed, match="status 401: Who is asking"):
                await call(PAYLOAD, secret=None)
    assert service.received[0].body == PAYLOAD
    assert service.received[0].headers["content-type"] == "application/json"
    assert service.received[0].headers["accept-encoding"] == "identity"
