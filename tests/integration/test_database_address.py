"""Signing in to the database on AWS: tokens as boto3 makes them, and TLS that is really verified."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from psycopg.conninfo import conninfo_to_dict

from infra.local.postgres import Postgres
from octopus.cloud.database import Database
from octopus.cloud.database_address import CA_BUNDLE, IamAddress, secret_address
from octopus.errors import DatabaseUnavailable

URL = "postgresql://octopus_app@octopus.cluster-abc.us-east-1.rds.amazonaws.com:5432/octopus"
SSL_REQUEST = bytes.fromhex("0000000804d2162f")  # "SSLRequest" in the PostgreSQL manual §55.7


async def password(url: str) -> str:
    return str(conninfo_to_dict(await IamAddress(url)())["password"])


async def test_a_token_is_what_boto3_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a/session+token=")
    client = boto3.client("rds")
    for _ in range(10):  # the clock may pass a second in between
        mine = await password(URL)
        theirs = client.generate_db_auth_token(urlsplit(URL).hostname, 5432, "octopus_app")
        if mine == theirs:
            break
    assert mine == theirs


async def test_a_token_is_for_one_user_one_host_and_a_quarter_of_an_hour() -> None:
    token = urlsplit(f"https://{await password(URL)}")
    query = parse_qs(token.query)
    assert (token.hostname, token.port) == ("octopus.cluster-abc.us-east-1.rds.amazonaws.com", 5432)
    assert query["DBUser"] == ["octopus_app"]
    assert query["X-Amz-Expires"] == ["900"]


async def test_each_connect_signs_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with credentials that Lambda has changed meanwhile."""
    address = IamAddress(URL)
    first = conninfo_to_dict(await address())["password"]
    await asyncio.sleep(1.1)  # a signature names the second
    assert conninfo_to_dict(await address())["password"] != first


async def test_without_credentials_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(DatabaseUnavailable, match="no AWS credentials"):
        await IamAddress(URL)()


async def test_tls_is_verified_unless_the_address_says_otherwise() -> None:
    parameters = conninfo_to_dict(await IamAddress(URL)())
    assert parameters["sslmode"] == "verify-full"
    assert parameters["sslrootcert"] == str(CA_BUNDLE)
    other = conninfo_to_dict(await IamAddress(f"{URL}?sslrootcert=/my/bundle.pem")())
    assert (other["sslmode"], other["sslrootcert"]) == ("verify-full", "/my/bundle.pem")


async def test_a_secret_that_cannot_be_read_is_a_database_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(DatabaseUnavailable, match="secret"):
        await secret_address(URL, "octopus/owner")()


@pytest.mark.filterwarnings("ignore:Parsed a serial number")  # one of AWS's own has such a number; OpenSSL takes it
def test_the_bundle_holds_the_authorities_of_rds_for_years() -> None:
    roots = x509.load_pem_x509_certificates(CA_BUNDLE.read_bytes())
    names = {root.subject.rfc4514_string() for root in roots}
    for region in ("us-east-1", "us-west-2", "eu-central-1", "eu-west-1", "ap-northeast-1", "ap-southeast-2"):
        assert [name for name in names if f"Amazon RDS {region} Root CA RSA2048 G1" in name]
    assert [name for name in names if "CN=Amazon Root CA 1" in name]  # signs RDS Proxy
    assert min(root.not_valid_after_utc for root in roots) > datetime.now(UTC) + timedelta(days=3 * 365)
    assert all(root.issuer == root.subject for root in roots)


class Tls:
    """PostgreSQL's way to TLS in front of a server that has none: the package's is built without OpenSSL."""

    def __init__(self, directory: Path, behind: Path) -> None:
        self.certificate = directory / "ca.pem"
        self._behind = behind
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(_certificate("localhost", self.certificate))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._listen)

    def __enter__(self) -> int:
        """The port."""
        self._thread.start()
        port: int = self._listener.getsockname()[1]
        return port

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _listen(self) -> None:
        """One connection after the other, until the listener is shut down."""
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(ssl.SSLError, ConnectionError):
                    self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        if connection.recv(8) != SSL_REQUEST:
            return
        connection.sendall(b"S")
        with self._context.wrap_socket(connection, server_side=True) as tls, socket.socket(socket.AF_UNIX) as behind:
            behind.connect(str(self._behind))
            while True:
                ready = [tls] if tls.pending() else select.select([tls, behind], [], [])[0]
                for source in ready:
                    if not (piece := source.recv(65_536)):
                        return
                    (behind if source is tls else tls).sendall(piece)


def _certificate(host: str, public: Path) -> Path:
    """A certificate that signs itself; `public` becomes what a client must trust. Returns it with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    public.write_bytes(pem)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both = public.with_name("both.pem")
    both.write_bytes(private + pem)
    return both


@pytest.mark.parametrize(
    ("host", "trusts", "connects"),
    [("localhost", "the server's", True), ("localhost", "RDS's", False), ("127.0.0.1", "the server's", False)],
)
async def test_only_a_verified_server_is_spoken_to(
    postgres: Postgres, database_urls: Any, tmp_path: Path, host: str, trusts: str, connects: bool
) -> None:
    behind = conninfo_to_dict(database_urls.app)
    tls = Tls(tmp_path, Path(str(behind["host"]), ".s.PGSQL.5432"))
    with tls as port:
        bundle = tls.certificate if trusts == "the server's" else CA_BUNDLE
        url = f"postgresql://octopus_app@{host}:{port}/{behind['dbname']}?sslrootcert={bundle}"
        database = Database(IamAddress(url), pool_size=1, connect_timeout_s=2)
        try:
            if connects:
                assert await database.all("acme", "select 1 as one") == [{"one": 1}]
            else:
                with pytest.raises(DatabaseUnavailable):
                    await database.all("acme", "select 1 as one")
        finally:
            await database.close()
