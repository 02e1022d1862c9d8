"""A small OIDC issuer in the place of Cognito. It gives anyone on this machine a token for any tenant and
user."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.environment import AUDIENCE

LIFETIME_SECONDS = 12 * 3600


class TokenRequest(BaseModel):
    tenant_id: str = Field(min_length=1)
    sub: str = Field(min_length=1)
    groups: list[str] = []


class Issuer:
    """Signs tokens as `url` with the key in a file, which is made once so that tokens outlive a restart."""

    def __init__(self, url: str, key_file: Path) -> None:
        self.url = url
        self._key = _load_or_make(key_file)
        public: dict[str, Any] = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        self._key_id = hashlib.sha256(public["n"].encode()).hexdigest()[:16]
        self.jwks = {"keys": [{**public, "kid": self._key_id, "use": "sig", "alg": "RS256"}]}

    def token(self, tenant: str, user: str, groups: Sequence[str] = ()) -> str:
        """A token with the claims of a Cognito user whose tenant is the claim `tenant_id`."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": user,
            "tenant_id": tenant,
            "cognito:groups": list(groups),
            "iat": now,
            "exp": now + LIFETIME_SECONDS,
        }
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": self._key_id})


def create_app(issuer: Issuer) -> Starlette:
    """The issuer's endpoints, to be mounted at the path of `issuer.url`."""

    async def configuration(_: Request) -> Response:
        return JSONResponse(
            {
                "issuer": issuer.url,
                "jwks_uri": f"{issuer.url}/.well-known/jwks.json",
                "token_endpoint": f"{issuer.url}/token",
                "id_token_signing_alg_values_supported": ["RS256"],
                "response_types_supported": ["token"],
                "subject_types_supported": ["public"],
            }
        )

    async def keys(_: Request) -> Response:
        return JSONResponse(issuer.jwks)

    async def token(request: Request) -> Response:
        try:
            wanted = TokenRequest.model_validate_json(await request.body())
        except ValidationError as error:
            return JSONResponse({"error": "invalid_request", "error_description": str(error)}, 400)
        signed = issuer.token(wanted.tenant_id, wanted.sub, wanted.groups)
        return JSONResponse({"access_token": signed, "token_type": "Bearer", "expires_in": LIFETIME_SECONDS})

    return Starlette(
        routes=[
            Route("/.well-known/openid-configuration", configuration),
            Route("/.well-known/jwks.json", keys),
            Route("/token", token, methods=["POST"]),
        ]
    )


def _load_or_make(file: Path) -> rsa.RSAPrivateKey:
    if file.exists():
        loaded = serialization.load_pem_private_key(file.read_bytes(), password=None)
        assert isinstance(loaded, rsa.RSAPrivateKey)  # nothing else is ever written there
        return loaded
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(text)
    return key
