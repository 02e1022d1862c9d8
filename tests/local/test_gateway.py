"""One address: requests reach the API as API Gateway's events, and its results come back as responses."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import AsyncIterator
from concurrent.futures import BrokenExecutor
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from infra.local.gateway import Environment, create_app


class Api:
    """Stands where the function is: keeps the event, answers `result`."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.result: Any = {"statusCode": 200}

    async def __call__(self, event: dict[str, Any]) -> Any:
        self.events.append(event)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


async def chat(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(f"chat {scope['path']}")(scope, receive, send)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def client(api: Api) -> TestClient:
    app = create_app(chat, api, PlainTextResponse("issuer"))
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


# Requests


def test_an_event_has_what_api_gateway_puts_into_it(client: TestClient, api: Api) -> None:
    client.post("/v1/agents", json={"name": "aria"}, headers={"Authorization": "Bearer t", "User-Agent": "test"})
    [event] = api.events
    parsed = APIGatewayProxyEventV2(event)
    assert (parsed.version, parsed.http_method, parsed.path) == ("2.0", "POST", "/v1/agents")
    assert parsed.json_body == {"name": "aria"}
    assert parsed.headers["authorization"] == "Bearer t"
    assert parsed.request_context.stage == "$default"
    assert parsed.request_context.http.user_agent == "test"
    assert parsed.request_context.request_id
    assert {"cookies", "queryStringParameters"}.isdisjoint(event)


def test_the_path_is_decoded_and_the_query_string_is_not(client: TestClient, api: Api) -> None:
    client.get("/v1/users/a%40b%20c/memory?name=%C3%A4&tag=1&tag=2&empty=")
    [event] = api.events
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/v1/users/a@b c/memory"
    assert event["rawQueryString"] == "name=%C3%A4&tag=1&tag=2&empty="
    assert event["queryStringParameters"] == {"name": "ä", "tag": "1,2", "empty": ""}


def test_repeated_headers_are_joined_and_cookies_listed(client: TestClient, api: Api) -> None:
    client.get("/v1/agents", headers=[("X-Part", "a"), ("X-Part", "b"), ("Cookie", "one=1; two=2")])  # type: ignore[arg-type]
    [event] = api.events
    assert event["headers"]["x-part"] == "a,b"
    assert event["cookies"] == ["one=1", "two=2"]
    assert "cookie" not in event["headers"]


@pytest.mark.parametrize(
    ("content_type", "body", "is_base64"),
    [
        ("application/json; charset=utf-8", '{"ä": 1}'.encode(), False),
        ("application/octet-stream", b"\x00\xff", True),
        ("text/plain", b"\xff", True),
    ],
)
def test_bodies_that_are_not_text_are_base64(
    client: TestClient, api: Api, content_type: str, body: bytes, is_base64: bool
) -> None:
    client.put("/v1/things", content=body, headers={"Content-Type": content_type})
    [event] = api.events
    assert event["isBase64Encoded"] is is_base64
    assert (base64.b64decode(event["body"]) if is_base64 else event["body"].encode()) == body


def test_a_request_without_a_body_has_none(client: TestClient, api: Api) -> None:
    client.delete("/v1/agents/1")
    assert "body" not in api.events[0]


# Responses


def test_status_headers_cookies_and_binary_bodies_come_back(client: TestClient, api: Api) -> None:
    api.result = {
        "statusCode": 418,
        "headers": {"content-type": "image/png", "x-one": "1"},
        "cookies": ["a=1; Path=/", "b=2"],
        "body": base64.b64encode(b"\x89PNG").decode(),
        "isBase64Encoded": True,
    }
    response = client.get("/v1/things")
    assert (response.status_code, response.content) == (418, b"\x89PNG")
    assert (response.headers["content-type"], response.headers["x-one"]) == ("image/png", "1")
    assert response.headers.get_list("set-cookie") == ["a=1; Path=/", "b=2"]


def test_a_result_without_a_status_is_the_json_body(client: TestClient, api: Api) -> None:
    api.result = {"message": "hello"}
    response = client.get("/v1/things")
    assert (response.status_code, response.json()) == (200, {"message": "hello"})


def test_a_function_that_fails_is_an_internal_server_error_without_its_reason(client: TestClient, api: Api) -> None:
    api.result = RuntimeError("secret")
    response = client.get("/v1/things")
    assert (response.status_code, response.json()) == (500, {"message": "Internal Server Error"})


# Routes


@pytest.mark.parametrize(
    ("path", "answer"), [("/v1/chat", "chat /v1/chat"), ("/healthz", "chat /healthz"), ("/issuer/token", "issuer")]
)
def test_chat_and_issuer_answer_their_own_paths(client: TestClient, api: Api, path: str, answer: str) -> None:
    assert client.post(path).text == answer
    assert api.events == []


def test_a_page_of_another_name_is_not_let_in(client: TestClient) -> None:
    assert client.post("/issuer/token", headers={"Host": "attacker.example"}).status_code == 400


# The API's process


def begin() -> None:
    pass


def act(event: dict[str, Any]) -> Any:
    match event:
        case {"raise": text}:
            raise ValueError(text)
        case {"die": True}:
            os.kill(os.getpid(), signal.SIGKILL)
    return {"pid": os.getpid()}


@pytest.fixture
async def environment() -> AsyncIterator[Environment]:
    environment = Environment(begin, act)
    yield environment
    environment.close()


async def test_calls_share_one_process_that_is_not_this_one(environment: Environment) -> None:
    first, second = await environment.invoke({}), await environment.invoke({})
    assert first == second != {"pid": os.getpid()}


async def test_an_exception_leaves_the_process_alive_and_a_death_makes_a_new_one(environment: Environment) -> None:
    first = await environment.invoke({})
    with pytest.raises(ValueError, match="boom"):
        await environment.invoke({"raise": "boom"})
    assert await environment.invoke({}) == first
    with pytest.raises(BrokenExecutor):
        await environment.invoke({"die": True})
    assert await environment.invoke({}) != first
