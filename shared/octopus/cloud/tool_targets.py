"""Where registered tools run: Lambda functions and HTTPS endpoints.

Neither is retried, for a tool may have done its work before it failed to say so.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import boto3
import httpx2
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from octopus.cloud.secrets import secret_string
from octopus.errors import InvalidInput, Unavailable
from octopus.tools.types import HttpsTarget, LambdaTarget, ToolFailed

# Read from an answer; the toolbox keeps far less of it.
MAX_ANSWER_BYTES = 1 << 20
_MAX_REASON = 500  # characters of a failed tool's own words
_CONNECT_S = 5.0
_ANSWER_S = 35.0  # the toolbox gives up first

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class ToolEndpoints:
    """Implements `octopus.tools.ports.ToolTargets`."""

    def __init__(
        self,
        *,
        function_prefix: str,
        hosts: Sequence[str],
        secrets_prefix: str,
        resolve: Resolve | None = None,
        is_public: Callable[[str], bool] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Functions must begin with `function_prefix`. `hosts` are ``name``, ``name:port`` or ``*.parent``.

        A secret is read at ``secrets_prefix/tenant/name``. The last three are for tests, which own no public address.
        """
        self._function_prefix = function_prefix
        self._hosts = [host.lower() for host in hosts]
        self._secrets_prefix = secrets_prefix
        self._resolve = resolve or _resolve
        self._is_public = is_public or is_public_address
        self._given_tls = tls

    @cached_property
    def _lambda(self) -> Any:
        once = Config(
            connect_timeout=_CONNECT_S,
            read_timeout=_ANSWER_S,
            retries={"total_max_attempts": 1},
            max_pool_connections=50,
        )
        return boto3.client("lambda", config=once)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpx2.create_ssl_context(trust_env=False)

    def check(self, target: LambdaTarget | HttpsTarget) -> None:
        """Raise `InvalidInput` for a function or a host that the settings do not allow."""
        if isinstance(target, LambdaTarget):
            if not target.function.startswith(self._function_prefix):
                raise _refusal("function", f"tools may call functions whose name begins with {self._function_prefix}")
        else:
            self._allowed(target.url)

    async def invoke(self, tenant_id: str, target: LambdaTarget | HttpsTarget, payload: Mapping[str, Any]) -> str:
        """What the target answers, at most `MAX_ANSWER_BYTES` of it. Raises `ToolFailed`."""
        try:
            self.check(target)  # the settings may have changed since it was registered
        except InvalidInput as exc:
            raise ToolFailed("The tool's target is not allowed any more; tell an administrator.") from exc
        if isinstance(target, LambdaTarget):
            return await asyncio.to_thread(self._invoke_function, target.function, json.dumps(payload))
        return await self._post(tenant_id, target, payload)

    def _invoke_function(self, function: str, payload: str) -> str:
        try:
            answer = self._lambda.invoke(FunctionName=function, Payload=payload.encode())
            body: bytes = answer["Payload"].read(MAX_ANSWER_BYTES)
        except (BotoCoreError, ClientError) as exc:
            raise ToolFailed("The tool's function cannot be called; tell an administrator.") from exc
        text = body.decode("utf-8", errors="replace")
        try:
            parsed = json.loads(text)
        except ValueError:  # cut off, or not JSON
            parsed = None
        if answer.get("FunctionError"):
            reason = parsed.get("errorMessage", "") if isinstance(parsed, dict) else ""
            raise ToolFailed(f"The tool failed: {str(reason)[:_MAX_REASON] or 'it gave no reason'}")
        return parsed if isinstance(parsed, str) else text

    def _allowed(self, url: str) -> httpx2.URL:
        try:
            parsed = httpx2.URL(url)
        except httpx2.InvalidURL as exc:
            raise _refusal("url", f"is not a URL: {exc}") from exc
        host, port = parsed.raw_host.decode().rstrip("."), parsed.port or 443
        if parsed.scheme != "https" or not host or parsed.userinfo:
            raise _refusal("url", "must be https://host/…, without user or password")
        names = {host, f"*.{host.partition('.')[2]}"} if port == 443 else {f"{host}:{port}"}
        if names.isdisjoint(self._hosts):
            raise _refusal("url", f"{host}:{port} is not among the hosts that this deployment allows")
        return parsed

    async def _post(self, tenant_id: str, target: HttpsTarget, payload: Mapping[str, Any]) -> str:
        url = self._allowed(target.url)
        address = await self._public_address(url.raw_host.decode(), url.port or 443)
        headers = {"Host": url.netloc.decode(), "Accept-Encoding": "identity"}
        if target.secret:
            headers["Authorization"] = f"Bearer {await self._secret(tenant_id, target.secret)}"
        # Connect to the very address that was checked: a second look-up might answer differently. A client for each
        # call, because pooled connections are told apart by address alone.
        client = httpx2.AsyncClient(
            verify=self._tls, trust_env=False, timeout=httpx2.Timeout(_ANSWER_S, connect=_CONNECT_S)
        )
        request = client.build_request(
            "POST",
            url.copy_with(host=address),
            json=payload,
            headers=headers,
            extensions={"sni_hostname": url.raw_host.decode()},
        )
        try:
            async with client:
                response = await client.send(request, stream=True, follow_redirects=False)
                body = await _read(response)
        except httpx2.HTTPError as exc:
            raise ToolFailed(f"The tool's endpoint does not answer ({type(exc).__name__}).") from exc
        if response.is_success:
            return body
        if response.is_redirect:
            raise ToolFailed("The tool's endpoint redirects, which is not followed; tell an administrator.")
        raise ToolFailed(f"The tool's endpoint answered with status {response.status_code}: {body[:_MAX_REASON]}")

    async def _public_address(self, host: str, port: int) -> str:
        try:
            addresses = await self._resolve(host, port)
        except OSError as exc:
            raise ToolFailed(f"The tool's host {host} is not known.") from exc
        if not addresses or not all(self._is_public(address) for address in addresses):
            raise ToolFailed(f"The tool's host {host} has an address that is not public; tell an administrator.")
        return addresses[0]

    async def _secret(self, tenant_id: str, name: str) -> str:
        try:
            return await secret_string(f"{self._secrets_prefix}/{tenant_id}/{name}")
        except Unavailable as exc:
            raise ToolFailed("The tool's secret cannot be read; tell an administrator.") from exc


def is_public_address(address: str) -> bool:
    """True for addresses of the public internet: none that is private, loopback, link-local, multicast or reserved,
    and none that carries an IPv4 address inside, which might be one of those."""
    ip: IpAddress = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        inside = ip.ipv4_mapped
        if inside is None:
            return ip.is_global and ip in _GLOBAL_UNICAST and ip not in _SIX_TO_FOUR
        ip = inside
    return ip.is_global and not ip.is_multicast


_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


async def _read(response: httpx2.Response) -> str:
    """The body's beginning. As sent: a compressed one, which nobody asked for, could unpack to anything."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ToolFailed("The tool's endpoint answered in a compressed form that was not asked for.")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) >= MAX_ANSWER_BYTES:
            break
    return body[:MAX_ANSWER_BYTES].decode("utf-8", errors="replace")


def _refusal(field: str, reason: str) -> InvalidInput:
    return InvalidInput(f"target.{field}: {reason}.", field=f"target.{field}")
