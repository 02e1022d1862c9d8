"""Bearer tokens, verified with PyJWT against the issuer's published keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import jwt

from octopus.errors import Unauthenticated, Unavailable
from octopus.identity import Principal, Role
from octopus.text import storable

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
        self._keys = _Keys(jwks_url, cache_jwk_set=True, lifespan=_KEYS_LIFESPAN_S, timeout=5)

    async def verify(self, authorization: str | None) -> Principal:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated()
        try:
            claims = await asyncio.to_thread(self._claims, token.strip())
        except (jwt.PyJWKClientConnectionError, jwt.PyJWKSetError) as exc:
            raise Unavailable("The token issuer's keys cannot be fetched; retry.", retry_after=2) from exc
        except jwt.ExpiredSignatureError as exc:
            raise Unauthenticated("The token has expired; get a new one.") from exc
        except (jwt.PyJWTError, ValueError) as exc:
            raise Unauthenticated("The token does not verify: " + _reason(exc)) from exc
        return Principal(
            _name(claims, self._tenant_claim), _name(claims, "sub"), _roles(claims.get(self._groups_claim))
        )

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


class _Keys(jwt.PyJWKClient):
    """Calls it a failed fetch, too, when what the issuer's address gives is no key set: a page of a proxy, say."""

    def fetch_data(self) -> Any:
        try:
            return super().fetch_data()
        except (ValueError, jwt.PyJWKClientError) as exc:
            raise jwt.PyJWKClientConnectionError("There is no key set at the issuer's address.") from exc


def _name(claims: Mapping[str, Any], claim: str) -> str:
    """A claim that names somebody: text that can be stored, and not blank."""
    value = claims.get(claim)
    if not isinstance(value, str) or not value.strip():
        raise Unauthenticated(f"The token has no claim '{claim}', which is needed.")
    try:
        return storable(value)
    except ValueError as exc:
        raise Unauthenticated(f"The token's claim '{claim}' {exc}.") from exc


def _roles(groups: object) -> frozenset[Role]:
    """Roles of a list of groups, or of one text with groups between blanks; anything else gives none."""
    names = groups.split() if isinstance(groups, str) else groups if isinstance(groups, list) else []
    return frozenset(role for role in Role if role.value in names)


def _reason(error: Exception) -> str:
    """PyJWT's own words name the check that failed and carry nothing of the token's content."""
    reasons: dict[type[Exception], str] = {
        jwt.InvalidAudienceError: "wrong audience.",
        jwt.InvalidIssuerError: "wrong issuer.",
        jwt.InvalidSignatureError: "wrong signature.",
        jwt.MissingRequiredClaimError: "a required claim is missing.",
    }
    return reasons.get(type(error), "it is malformed or signed with an unknown key.")
