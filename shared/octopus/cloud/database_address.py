"""Addresses of the database on AWS: TLS always verified, and no password that outlives its use.

With IAM authentication a password is a request signed with the function's own credentials. It is valid for 15 minutes
and only for connecting; an open connection stays open. Signing needs no network and takes less than a millisecond, so
each connect signs anew and nothing is kept.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from urllib.parse import urlencode

import botocore.session
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from octopus.cloud.secrets import secret_string
from octopus.errors import DatabaseUnavailable, Unavailable

CA_BUNDLE = Path(__file__).with_name("rds") / "ca-bundle.pem"
_TOKEN_S = 900
_SERVICE = "rds-db"

Address = Callable[[], Awaitable[str]]


def fixed_address(url: str) -> Address:
    """The address that is always `url`."""

    async def address() -> str:
        return url

    return address


class IamAddress:
    """An address whose password is a fresh IAM token at each call; for `octopus.cloud.database.Database`."""

    def __init__(self, url: str) -> None:
        """`url` has user, host and port, no password: ``postgresql://octopus_app@HOST:5432/octopus``. Its own
        parameters win, so ``?sslrootcert=`` can name another bundle."""
        self._parameters = _verified(url)

    @cached_property
    def _session(self) -> botocore.session.Session:
        return botocore.session.get_session()

    async def __call__(self) -> str:
        """Raises `DatabaseUnavailable` when the function has no credentials."""
        return make_conninfo("", **self._parameters, password=await asyncio.to_thread(self._token))

    def _token(self) -> str:
        """As boto3's `rds.generate_db_auth_token`, which this spares the 0.1 s that its client takes to make."""
        session, where = self._session, self._parameters
        credentials, region = session.get_credentials(), session.get_config_variable("region")
        if credentials is None:
            raise DatabaseUnavailable("There are no AWS credentials to sign in to the database with.")
        signer = RequestSigner(
            ServiceId(_SERVICE), region, _SERVICE, "v4", credentials, session.get_component("event_emitter")
        )
        query = urlencode({"Action": "connect", "DBUser": where["user"]})
        url = f"https://{where['host']}:{where.get('port', 5432)}/?{query}"
        request = {"method": "GET", "url": url, "headers": {}, "body": {}, "context": {}}
        signed: str = signer.generate_presigned_url(
            request, operation_name="connect", region_name=region, expires_in=_TOKEN_S, signing_name=_SERVICE
        )
        return signed.removeprefix("https://")


def secret_address(url: str, secret_id: str) -> Address:
    """An address whose user and password are in a secret that RDS keeps and rotates (``{username, password}``)."""
    parameters = _verified(url)

    async def address() -> str:
        try:
            secret = json.loads(await secret_string(secret_id))
        except Unavailable as exc:
            raise DatabaseUnavailable(exc.detail) from exc
        return make_conninfo("", **parameters | {"user": secret["username"], "password": secret["password"]})

    return address


def _verified(url: str) -> dict[str, str]:
    """The parameters of `url`, with the server's certificate and name checked against RDS's authorities."""
    secure = {"sslmode": "verify-full", "sslrootcert": str(CA_BUNDLE)}
    return secure | {name: str(value) for name, value in conninfo_to_dict(url).items()}
