"""Tokens of the local issuer, verified as any service would: by PyJWT against the published keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jwt
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from infra.local.issuer import Issuer, create_app

URL = "http://127.0.0.1:8080/issuer"


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(URL, tmp_path / "issuer.pem")


@pytest.fixture
def client(issuer: Issuer) -> TestClient:
    return TestClient(Starlette(routes=[Mount("/issuer", create_app(issuer))]), base_url="http://127.0.0.1:8080")


def verified(token: str, client: TestClient) -> dict[str, Any]:
    configuration = client.get("/issuer/.well-known/openid-configuration").json()
    assert configuration["issuer"] == URL
    keys = jwt.PyJWKSet.from_dict(client.get(configuration["jwks_uri"]).json())
    key = keys[jwt.get_unverified_header(token)["kid"]]
    claims: dict[str, Any] = jwt.decode(token, key, algorithms=["RS256"], audience="octopus", issuer=URL)
    return claims


def test_a_token_verifies_and_carries_tenant_user_and_groups(client: TestClient) -> None:
    answer = client.post("/issuer/token", json={"tenant_id": "acme", "sub": "ada", "groups": ["OctopusAdmin"]})
    claims = verified(answer.json()["access_token"], client)
    assert (claims["tenant_id"], claims["sub"], claims["cognito:groups"]) == ("acme", "ada", ["OctopusAdmin"])
    assert claims["exp"] - claims["iat"] == answer.json()["expires_in"] == 12 * 3600


def test_a_token_survives_a_restart(issuer: Issuer, client: TestClient, tmp_path: Path) -> None:
    before = issuer.token("acme", "ada")
    restarted = Issuer(URL, tmp_path / "issuer.pem")
    assert restarted.jwks == issuer.jwks
    assert verified(before, TestClient(Starlette(routes=[Mount("/issuer", create_app(restarted))])))["sub"] == "ada"


def test_the_key_is_nobody_elses_to_read(issuer: Issuer, tmp_path: Path) -> None:
    assert (tmp_path / "issuer.pem").stat().st_mode & 0o077 == 0


def test_another_issuers_token_does_not_verify(client: TestClient, tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        verified(Issuer(URL, tmp_path / "other.pem").token("acme", "ada"), client)


@pytest.mark.parametrize("body", [{}, {"tenant_id": "acme"}, {"tenant_id": "", "sub": "ada"}, "nonsense"])
def test_a_request_without_tenant_or_user_is_refused(client: TestClient, body: Any) -> None:
    assert client.post("/issuer/token", json=body).status_code == 400
