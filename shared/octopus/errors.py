"""Everything that Octopus raises on purpose.

::

    OctopusError                     status  retryable
    ├── InvalidInput                    422  no   a field is out of range or missing
    │   ├── BudgetExceeded              422  no   prompt, procedure and message alone exceed the budget
    │   ├── MalformedBody               400  no   the body is not JSON
    │   └── BodyTooLarge                413  no   the body exceeds the limit
    ├── Unauthenticated                 401  no   no token, or one that does not verify
    ├── Forbidden                       403  no   the token lacks the role
    ├── NotFound                        404  no   unknown here, or another tenant's
    ├── Conflict                        409  no   the state has changed; read it again
    │   └── TurnInProgress              409  yes  another turn holds the conversation
    ├── Unavailable                     503  yes  a dependency does not answer
    │   ├── DatabaseUnavailable         503  yes
    │   ├── MemoryUnavailable           503  yes  every enabled memory failed in the read phase
    │   └── ModelUnavailable            503  yes  the provider failed in a way that passes
    ├── ModelRefused                    502  no   the provider rejected the request for good
    ├── ModelReplyInvalid               502  yes  the reply does not fit the requested schema
    ├── EmbeddingSpaceMismatch          500  no   stored vectors belong to another embedding model
    └── DocumentRejected                422  no   a document cannot be read; the reason is for its owner

The mapping to HTTP is this table and nothing else: `status` and `retryable` are class attributes.
"""

from __future__ import annotations

from typing import ClassVar


class OctopusError(Exception):
    """Unexpected Octopus error."""

    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str | None = None, *, retry_after: int | None = None, **extra: object) -> None:
        """`detail` says what to change; `extra` are further members of the problem document (RFC 9457 §3.2)."""
        self.detail = detail or (self.__doc__ or self.title).strip()
        self.retry_after = retry_after
        self.extra = extra
        super().__init__(self.detail)


class InvalidInput(OctopusError):
    """A field of the request is missing or out of range."""

    status, title = 422, "Invalid input"


class BudgetExceeded(InvalidInput):
    """System prompt, procedure and message alone exceed the working memory budget."""

    title = "Working memory budget exceeded"


class MalformedBody(InvalidInput):
    """The request body is not valid JSON."""

    status, title = 400, "Malformed body"


class BodyTooLarge(InvalidInput):
    """The request body exceeds the limit."""

    status, title = 413, "Body too large"


class Unauthenticated(OctopusError):
    """Send a valid bearer token in the Authorization header."""

    status, title = 401, "Unauthenticated"


class Forbidden(OctopusError):
    """The token does not carry the role that this operation needs."""

    status, title = 403, "Forbidden"


class NotFound(OctopusError):
    """No such resource."""

    status, title = 404, "Not found"


class Conflict(OctopusError):
    """The resource has changed since it was read; read it again."""

    status, title = 409, "Conflict"


class TurnInProgress(Conflict):
    """Another turn of this conversation is being answered; retry when it has ended."""

    retryable, title = True, "Turn in progress"


class Unavailable(OctopusError):
    """A dependency does not answer; retry."""

    status, retryable, title = 503, True, "Temporarily unavailable"


class DatabaseUnavailable(Unavailable):
    """The database does not answer; retry."""

    title = "Database unavailable"


class MemoryUnavailable(Unavailable):
    """Every enabled memory failed in the read phase; retry."""

    title = "Memory unavailable"


class ModelUnavailable(Unavailable):
    """The model provider does not answer; retry."""

    title = "Model unavailable"


class ModelRefused(OctopusError):
    """The model provider rejected the request; retrying will not help."""

    status, title = 502, "Model refused the request"


class ModelReplyInvalid(OctopusError):
    """The model's reply does not fit the requested schema."""

    status, retryable, title = 502, True, "Model reply invalid"


class EmbeddingSpaceMismatch(OctopusError):
    """The stored vectors belong to another embedding model than the configured one."""

    title = "Embedding space mismatch"


class DocumentRejected(OctopusError):
    """The document cannot be indexed."""

    status, title = 422, "Document rejected"
