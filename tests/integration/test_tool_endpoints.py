"""Registered tools over real sockets: what is called, and what is refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import boto3
import pytest

from octopus.cloud.tool_targets import MAX_ANSWER_BYTES, ToolEndpoints, is_public_address
from octopus.errors import InvalidInput
from octopus.tools.types import HttpsTarget, LambdaTarget, ToolFailed
from tests.support.aws import moto_server
from tests.support.endpoint import HOST, Endpoint, Received, listening, response, trusting

PAYLOAD = {"tool": "lookup", "arguments": {"q": "ü"}, "context": {"tenant_id": "acme"}}
FUNCTION = LambdaTarget(kind="lambda", function="octopus-tool-lookup")


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with listening(tls=True) as endpoint:
        yield endpoint


def endpoints(*hosts: str, **changes: Any) -> ToolEndpoints:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    at_home: dict[str, Any] = {"resolve": resolve, "is_public": lambda address: True, "tls": trusting()}
    given = {"function_prefix": "octopus-tool-", "hosts": hosts, "secrets_prefix": "octopus/tools"}
    return ToolEndpoints(**given, **(at_home | changes))


def https(endpoint: Endpoint, path: str = "/lookup", secret: str | None = None) -> HttpsTarget:
    return HttpsTarget(kind="https", url=f"https://{HOST}:{endpoint.port}{path}", secret=secret)


async def call(endpoint: Endpoint, **changes: Any) -> str:
    return await endpoints(f"{HOST}:{endpoint.port}", **changes).invoke("acme", https(endpoint), PAYLOAD)


async def test_the_endpoint_gets_arguments_and_context_and_its_answer_comes_back(endpoint: Endpoint) -> None:
    endpoint.says('{"found": "café"}')
    assert await call(endpoint) == '{"found": "café"}'
    [received] = endpoint.received
    assert (received.path, received.body) == ("/lookup", PAYLOAD)
    assert received.headers["host"] == f"{HOST}:{endpoint.port}"
    assert "authorization" not in received.headers


async def test_the_certificate_must_be_the_hosts(endpoint: Endpoint) -> None:
    endpoint.says("never")
    elsewhere = HttpsTarget(kind="https", url=f"https://other.test:{endpoint.port}/")
    with pytest.raises(ToolFailed, match="does not answer"):
        await endpoints(f"other.test:{endpoint.port}").invoke("acme", elsewhere, PAYLOAD)
    with pytest.raises(ToolFailed, match="does not answer"):
        await call(endpoint, tls=None)
    assert endpoint.received == []


async def test_the_name_is_looked_up_once_and_that_address_is_used(endpoint: Endpoint) -> None:
    """A name that answers differently the second time (DNS rebinding) gets nowhere."""
    endpoint.says("pinned")
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])

    async def resolve(host: str, port: int) -> list[str]:
        return next(answers)

    assert await call(endpoint, resolve=resolve) == "pinned"
    assert next(answers) == ["127.0.0.2"]


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["169.254.169.254"],
        ["8.8.8.8", "192.168.1.1"],
        ["::1"],
        ["fd00::1"],
        ["::ffff:10.0.0.1"],
        [],
    ],
)
async def test_a_host_that_resolves_to_a_private_address_is_refused(endpoint: Endpoint, addresses: list[str]) -> None:
    endpoint.says("secret")

    async def resolve(host: str, port: int) -> list[str]:
        return addresses

    with pytest.raises(ToolFailed, match="not public"):
        await call(endpoint, resolve=resolve, is_public=is_public_address)
    assert endpoint.received == []


async def test_localhost_is_refused_by_the_systems_own_resolver(endpoint: Endpoint) -> None:
    endpoint.says("secret")
    target = HttpsTarget(kind="https", url=f"https://localhost:{endpoint.port}/")
    with pytest.raises(ToolFailed, match="not public"):
        await endpoints(f"localhost:{endpoint.port}", resolve=None, is_public=None).invoke("acme", target, PAYLOAD)
    assert endpoint.received == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("::ffff:8.8.8.8", True),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("fe80::1", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("2002:a00:1::", False),
        ("64:ff9b::a00:1", False),
        ("::10.0.0.1", False),
        ("2001:db8::1", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public_address(address) is public


@pytest.mark.parametrize(
    ("hosts", "url", "allowed"),
    [
        (["api.example.com"], "https://api.example.com/x?y=1", True),
        (["api.example.com"], "https://API.example.com./x", True),
        (["*.example.com"], "https://api.example.com/", True),
        (["api.example.com:8443"], "https://api.example.com:8443/", True),
        (["*.example.com"], "https://example.com/", False),
        (["*.example.com"], "https://a.b.example.com/", False),
        (["*.example.com"], "https://evilexample.com/", False),
        (["api.example.com"], "https://api.example.com:8443/", False),
        (["api.example.com"], "http://api.example.com/", False),
        (["api.example.com"], "https://api.example.com@evil.test/", False),
        (["api.example.com"], "https://user:pw@api.example.com/", False),
        (["api.example.com"], "https:///x", False),
        (["api.example.com"], "https://[::1", False),
        ([], "https://api.example.com/", False),
    ],
)
def test_hosts_are_allowed_by_name(hosts: list[str], url: str, allowed: bool) -> None:
    target = HttpsTarget(kind="https", url=url)
    if allowed:
        endpoints(*hosts).check(target)
    else:
        with pytest.raises(InvalidInput, match=r"target\.url"):
            endpoints(*hosts).check(target)


async def test_a_target_that_is_not_allowed_any_more_is_not_called(endpoint: Endpoint) -> None:
    with pytest.raises(ToolFailed, match="not allowed any more"):
        await endpoints().invoke("acme", https(endpoint), PAYLOAD)
    with pytest.raises(ToolFailed, match="not allowed any more"):
        await endpoints().invoke("acme", LambdaTarget(kind="lambda", function="billing"), PAYLOAD)


async def test_redirects_are_not_followed(endpoint: Endpoint) -> None:
    endpoint.says("", "307 Temporary Redirect", Location=f"https://{HOST}:{endpoint.port}/inside")
    with pytest.raises(ToolFailed, match="redirects"):
        await call(endpoint)
    assert len(endpoint.received) == 1


async def test_an_error_is_told_with_its_words(endpoint: Endpoint) -> None:
    endpoint.says("no such vendor", "404 Not Found")
    with pytest.raises(ToolFailed, match="status 404: no such vendor"):
        await call(endpoint)


async def test_a_long_answer_is_read_in_part(endpoint: Endpoint) -> None:
    endpoint.says("x" * 5_000_000)
    assert await call(endpoint) == "x" * MAX_ANSWER_BYTES


async def test_a_compressed_answer_is_not_unpacked(endpoint: Endpoint) -> None:
    endpoint.says("\x1f\x8b", Content_Encoding="gzip")
    with pytest.raises(ToolFailed, match="compressed"):
        await call(endpoint)


async def test_a_connection_that_breaks_is_told(endpoint: Endpoint) -> None:
    async def answer(_: Received) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbut"

    endpoint.answer = answer
    with pytest.raises(ToolFailed, match="does not answer"):
        await call(endpoint)


async def test_the_tenants_secret_is_sent_and_no_other(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint.says("ok")
    tools = endpoints(f"{HOST}:{endpoint.port}")
    with moto_server() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        boto3.client("secretsmanager").create_secret(Name="octopus/tools/acme/crm", SecretString="s3cret")
        await tools.invoke("acme", https(endpoint, secret="crm"), PAYLOAD)
        with pytest.raises(ToolFailed, match="secret cannot be read"):
            await tools.invoke("umbrella", https(endpoint, secret="crm"), PAYLOAD)
    assert [received.headers["authorization"] for received in endpoint.received] == ["Bearer s3cret"]


async def test_a_function_is_called_once_and_its_failure_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{service.port}")
        tools = endpoints()

        service.says('"plain text"')
        assert await tools.invoke("acme", FUNCTION, PAYLOAD) == "plain text"
        service.says('{"errorMessage": "no such vendor"}', X_Amz_Function_Error="Unhandled")
        with pytest.raises(ToolFailed, match="no such vendor"):
            await tools.invoke("acme", FUNCTION, PAYLOAD)
        service.says('{"Type": "Service"}', "500 Internal Server Error")
        with pytest.raises(ToolFailed, match="cannot be called"):
            await tools.invoke("acme", FUNCTION, PAYLOAD)

    assert [r.path for r in service.received] == ["/2015-03-31/functions/octopus-tool-lookup/invocations"] * 3
    assert service.received[0].body == PAYLOAD


async def test_a_function_that_hangs_does_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{service.port}")
        release = asyncio.Event()

        async def answer(_: Received) -> bytes:
            await release.wait()
            return response(b"late")

        service.answer = answer
        began = time.perf_counter()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await endpoints().invoke("acme", FUNCTION, PAYLOAD)
        assert time.perf_counter() - began < 2
        release.set()  # let the thread that still waits go
