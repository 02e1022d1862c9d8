"""A small HTTP server whose every answer the test writes, with TLS for ``tools.test`` if wanted."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "tools.test"


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Endpoint:
    """`answer` makes the whole response, status line included."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], Awaitable[bytes]] | None = None

    def says(self, body: str, status: str = "200 OK", **headers: str) -> None:
        """Answer every request so."""

        async def answer(_: Received) -> bytes:
            return response(body.encode(), status, **headers)

        self.answer = answer

    def hangs(self) -> None:
        async def answer(_: Received) -> bytes:
            await asyncio.sleep(3600)
            return b""

        self.answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
            received = Received(first.split()[1], headers, body)
            self.received.append(received)
            assert self.answer is not None
            writer.write(await self.answer(received))
            await writer.drain()
        except ConnectionError:  # the client has heard enough
            pass
        finally:
            writer.close()


def response(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A response; underscores in header names stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{n}: {v}" for n, v in named.items()), f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def listening(*, tls: bool = False) -> AsyncIterator[Endpoint]:
    """An endpoint on a free port of 127.0.0.1."""
    endpoint = Endpoint()
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0, ssl=_certified() if tls else None)
    endpoint.port = server.sockets[0].getsockname()[1]
    try:
        yield endpoint
    finally:
        server.close()


@cache
def _certificate() -> tuple[bytes, bytes]:
    """A self-signed certificate for `HOST` and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private


def _certified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as directory:  # the ssl module reads files only
        chain = Path(directory) / "chain.pem"
        chain.write_bytes(b"".join(_certificate()))
        context.load_cert_chain(chain)
    return context


def trusting() -> ssl.SSLContext:
    """What a client needs in order to trust the endpoint, and nobody else."""
    return ssl.create_default_context(cadata=_certificate()[0].decode())
