"""Who is calling: tenant, user and roles, taken from a verified token and from nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from octopus.errors import Forbidden


class Role(StrEnum):
    """Roles carried by the groups of a token; without any, a caller chats and sees their own episodes."""

    ADMIN = "OctopusAdmin"
    DEBUG = "OctopusDebug"


@dataclass(frozen=True, slots=True)
class Principal:
    """A verified caller."""

    tenant_id: str
    user_id: str
    roles: frozenset[Role] = frozenset()

    def has(self, role: Role) -> bool:
        return role in self.roles

    def require(self, role: Role) -> None:
        """Raise `Forbidden`, naming the role, unless the caller has it."""
        if role not in self.roles:
            raise Forbidden(f"This operation needs the role {role.value}.")

    def reach(self, user_id: str | None = None) -> str | None:
        """Whose rows the caller may see: their own. An administrator sees those of `user_id`, or everybody's (None).

        Raises `Forbidden` when another asks for somebody else's.
        """
        if user_id != self.user_id and user_id is not None:
            self.require(Role.ADMIN)
        return user_id if self.has(Role.ADMIN) else self.user_id


class TokenVerifier(Protocol):
    """Turns the Authorization header into a `Principal`."""

    async def verify(self, authorization: str | None) -> Principal:
        """Raises `Unauthenticated` for a missing, malformed, expired or foreign token."""
        ...
