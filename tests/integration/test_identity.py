"""Tokens with odd claims, and issuers that are not themselves: who gets in as whom, and what everybody else is told."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from octopus.cloud.identity import JwtVerifier
from octopus.errors import Unauthenticated, Unavailable
from octopus.identity import Principal, Role
from tests.support.endpoint import Endpoint, listening

KEY = ec.generate_private_key(ec.SECP256R1())
KEYS = {"keys": [json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key())) | {"kid": "k1", "use": "sig"}]}
ADMIN = frozenset({Role.ADMIN})


@pytest.fixture
async def issuer() -> AsyncIterator[Endpoint]:
    async with listening() as issuer:
        issuer.says(json.dumps(KEYS))
        yield issuer


async def verify(issuer: Endpoint, **claims: Any) -> Principal:
    """A token of Ada's at Acme with these claims beside or in place of hers; None takes one away."""
    verifier = JwtVerifier(
        issuer="https://issuer.test",
        audience="octopus",
        jwks_url=f"http://127.0.0.1:{issuer.port}/jwks.json",
        tenant_claim="tenant_id",
        groups_claim="groups",
    )
    usual = {"iss": "https://issuer.test", "aud": "octopus", "sub": "ada", "tenant_id": "acme", "exp": time.time() + 60}
    said = {name: value for name, value in (usual | claims).items() if value is not None}
    return await verifier.verify("Bearer " + jwt.encode(said, KEY, algorithm="ES256", headers={"kid": "k1"}))


@pytest.mark.parametrize(
    ("groups", "roles"),
    [
        (["OctopusAdmin"], ADMIN),
        ("staff OctopusAdmin", ADMIN),
        (["octopusadmin", "OctopusAdmin2"], frozenset()),
        ([1, None, {"OctopusAdmin": True}], frozenset()),
        ({"OctopusAdmin": True}, frozenset()),
        ("NotOctopusAdmin", frozenset()),
        (7, frozenset()),
        (True, frozenset()),
        ([], frozenset()),
        (None, frozenset()),
    ],
)
async def test_roles_are_those_of_a_list_or_a_text(issuer: Endpoint, groups: Any, roles: frozenset[Role]) -> None:
    assert await verify(issuer, groups=groups) == Principal("acme", "ada", roles)


@pytest.mark.parametrize("claim", ["tenant_id", "sub"])
@pytest.mark.parametrize("value", ["", " \t", "a\x00b", "\ud800", 7, ["acme"], {"id": "acme"}, None])
async def test_who_has_no_proper_name_does_not_get_in(issuer: Endpoint, claim: str, value: Any) -> None:
    with pytest.raises(Unauthenticated):
        await verify(issuer, **{claim: value})


@pytest.mark.parametrize(
    "claims",
    [{"exp": 1}, {"exp": None}, {"exp": "soon"}, {"aud": "other"}, {"aud": None}, {"iss": "https://evil.test"}],
)
async def test_what_is_not_for_us_or_not_now_does_not_get_in(issuer: Endpoint, claims: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated):
        await verify(issuer, **claims)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("<html>Sign in to the network</html>", "200 OK"),
        ('{"keys": []}', "200 OK"),
        ("{}", "200 OK"),
        ("[]", "200 OK"),
        ('{"keys": [{"kty": "quantum", "kid": "k1"}]}', "200 OK"),
        ("", "200 OK"),
        (json.dumps(KEYS), "503 Service Unavailable"),
    ],
)
async def test_without_the_issuers_keys_nobody_is_called_a_liar(issuer: Endpoint, body: str, status: str) -> None:
    """A retry may find them; telling the client that the token is bad would sign its user out."""
    issuer.says(body, status)
    with pytest.raises(Unavailable, match="keys cannot be fetched"):
        await verify(issuer)
