"""Bearer tokens, verified with PyJWT against the issuer's published keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import jwt

from octopus.errors import Unauthenticated, Unavailable
from octopus.identity import Principal, Role

_ALGORITHMS = ["RS256", "ES256"]
_LEEWAY_S = 30  # of clock difference between the issuer and us
_KEYS_LIFESPAN_S = 600


class JwtVerifier:
    """Implements `octopus.identity.TokenVerifier` for any OIDC issuer.

    Checks signature, issuer, audience and expiry. Keys are fetched once and kept for ten minutes; an unknown key id
    fetches them anew, so that a rotation is noticed.
    """

    def __init__(self, *, issuer: str, audience: str, jwks_url: str, tenant_claim: str, groups_claim: str) -> None:
        self._issuer = issuer
        self._audience = audience
        self._tenant_claim = tenant_claim
        self._groups_claim = groups_claim
        self._keys = jwt.PyJWKClient(jwks_url, cache_jwk_set=True, lifespan=_KEYS_LIFESPAN_S, timeout=5)

    async def verify(self, authorization: str | None) -> Principal:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated()
        try:
            claims = await asyncio.to_thread(self._claims, token.strip())
        except jwt.PyJWKClientConnectionError as exc:
            raise Unavailable("The token issuer's keys cannot be fetched; retry.", retry_after=2) from exc
        except jwt.ExpiredSignatureError as exc:
            raise Unauthenticated("The token has expired; get a new one.") from exc
        except (jwt.InvalidTokenError, jwt.PyJWKClientError) as exc:
            raise Unauthenticated("The token does not verify: " + _reason(exc)) from exc
        return self._principal(claims)

    def _claims(self, token: str) -> Mapping[str, Any]:
        key = self._keys.get_signing_key_from_jwt(token)
        return jwt.decode(
            token,
            key,
            algorithms=_ALGORITHMS,
            audience=self._audience,
            issuer=self._issuer,
            leeway=_LEEWAY_S,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        tenant, user = claims.get(self._tenant_claim), claims["sub"]
        if not isinstance(tenant, str) or not tenant:
            raise Unauthenticated(f"The token has no claim '{self._tenant_claim}' that names the tenant.")
        if not isinstance(user, str) or not user:
            raise Unauthenticated("The token's claim 'sub' is empty.")
        groups = claims.get(self._groups_claim) or []
        if isinstance(groups, str):
            groups = groups.split()
        return Principal(tenant, user, frozenset(role for role in Role if role.value in groups))


def _reason(error: jwt.PyJWTError) -> str:
    """PyJWT's own words name the check that failed and carry nothing of the token's content."""
    reasons = {
        jwt.InvalidAudienceError: "wrong audience.",
        jwt.InvalidIssuerError: "wrong issuer.",
        jwt.InvalidSignatureError: "wrong signature.",
        jwt.MissingRequiredClaimError: "a required claim is missing.",
    }
    return reasons.get(type(error), "it is malformed or signed with an unknown key.")
