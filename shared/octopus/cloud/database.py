"""The database: one pool per execution environment, one tenant per transaction.

Every statement runs inside a transaction that first sets ``octopus.tenant_id``, which the row-level security
policies compare with. `Database.transaction` is the only way in, so a statement without a tenant cannot be written.
Driver errors leave this module as `octopus.errors`, never as psycopg's own.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import psycopg
from pgvector.psycopg import register_vector_async
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool
from pydantic_core import from_json

from octopus.errors import Conflict, DatabaseUnavailable, OctopusError, Unavailable

PLATFORM = ""  # tables of the platform have no tenant; under this name no tenant's row is visible
TRUSTED_S = 2.0
Row = dict[str, Any]
Params = Mapping[str, Any]

STATEMENT_TIMEOUT = "60s"  # nothing that the application does takes longer; the read phase has its own deadline
DEAD_PEER = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}

_BEGIN: LiteralString = "select set_config('octopus.tenant_id', %s, true), set_config('statement_timeout', %s, true)"


class Transaction:
    """Statements of one transaction of one tenant. They travel in a pipeline: a result is one round trip away."""

    def __init__(self, connection: psycopg.AsyncConnection[DictRow], pipeline: psycopg.AsyncPipeline) -> None:
        self._connection = connection
        self._pipeline = pipeline

    async def all(self, query: LiteralString, params: Params | None = None) -> list[Row]:
        """Every row of the result."""
        return await (await self._connection.execute(query, params)).fetchall()

    async def one(self, query: LiteralString, params: Params | None = None) -> Row | None:
        """The first row of the result, or None."""
        return await (await self._connection.execute(query, params)).fetchone()

    async def each(self, *statements: tuple[LiteralString, Params]) -> list[list[Row]]:
        """Every row of each statement's result, all in one round trip."""
        cursors = [await self._connection.execute(query, params) for query, params in statements]
        return [await cursor.fetchall() for cursor in cursors]

    async def run(self, query: LiteralString, params: Params | None = None) -> int:
        """The number of rows that the statement touched."""
        cursor = await self._connection.execute(query, params)
        await self._pipeline.sync()
        return cursor.rowcount

    async def many(self, query: LiteralString, params: Sequence[Params]) -> None:
        """Execute the statement once per parameter set, in one round trip."""
        if params:
            async with self._connection.cursor() as cursor:
                await cursor.executemany(query, params)


class _Connection(psycopg.AsyncConnection[DictRow]):
    """Remembers when it was last known to work."""

    worked_at = 0.0


async def _configure(connection: _Connection) -> None:
    """Types of the server's extensions, and a faster reader of JSON: a long history is half a megabyte of it."""
    await register_vector_async(connection)
    set_json_loads(_read_json, connection)


def _read_json(data: str | bytes) -> Any:
    try:
        return from_json(data, cache_strings="keys")
    except ValueError:  # nested deeper than it goes
        return json.loads(data)


async def _check_if_rested(connection: _Connection) -> None:
    """Ask a connection that has rested whether it still works; a function may have been frozen in the meantime.

    One that worked a moment ago is not asked: a round trip saved on every transaction.
    """
    if time.time() - connection.worked_at > TRUSTED_S:
        await AsyncConnectionPool.check_connection(connection)
    connection.worked_at = time.time()


class Database:
    """A pool of connections to PostgreSQL under one role."""

    def __init__(
        self,
        connection_parameters: Callable[[], Awaitable[str]],
        *,
        pool_size: int,
        connect_timeout_s: float,
    ) -> None:
        """`connection_parameters` is awaited at each connect, so that a short-lived IAM token is always fresh."""
        self._timeout_s = connect_timeout_s
        self._opening = asyncio.Lock()
        self._opened = False
        self._pool: AsyncConnectionPool[_Connection] = AsyncConnectionPool(
            conninfo=connection_parameters,
            min_size=0,
            max_size=pool_size,
            timeout=connect_timeout_s,
            reconnect_timeout=connect_timeout_s,
            max_idle=300.0,
            open=False,
            connection_class=_Connection,
            kwargs={
                "autocommit": True,
                "row_factory": dict_row,
                "prepare_threshold": 0,  # at once: a large query takes a millisecond to analyze and plan
                "connect_timeout": max(2, round(connect_timeout_s)),
                **DEAD_PEER,
            },
            configure=_configure,
            check=_check_if_rested,
        )

    @classmethod
    def at(cls, url: str, *, pool_size: int, connect_timeout_s: float = 5.0) -> Database:
        """A database at a fixed address."""

        async def address() -> str:
            return url

        return cls(address, pool_size=pool_size, connect_timeout_s=connect_timeout_s)

    async def _ensure_open(self) -> None:
        if not self._opened:
            async with self._opening:
                if not self._opened:
                    await self._pool.open()
                    self._opened = True

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def transaction(self, tenant_id: str) -> AsyncIterator[Transaction]:
        """One transaction that sees and writes this tenant's rows only.

        Raises `DatabaseUnavailable` when no connection can be had or it breaks, `Conflict` when a unique key, a missing
        row or a concurrent transaction stands in the way, `Unavailable` when it writes vectors of a model that is not
        in use any more, `OctopusError` for anything else that the database refuses; in each case nothing was written.
        """
        await self._ensure_open()
        try:
            async with (
                self._pool.connection() as connection,
                connection.pipeline() as pipeline,
                connection.transaction(),
            ):
                await connection.execute(_BEGIN, (tenant_id, STATEMENT_TIMEOUT))
                yield Transaction(connection, pipeline)
        except (psycopg.errors.UniqueViolation, psycopg.errors.SerializationFailure) as exc:
            raise Conflict("The same thing was written at the same time; read it again and retry.") from exc
        except psycopg.errors.ForeignKeyViolation as exc:
            raise Conflict("What this belongs to has been deleted at the same time; read it again.") from exc
        except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable) as exc:
            raise DatabaseUnavailable("The rows are locked by another transaction; retry.", retry_after=1) from exc
        except psycopg.errors.ObjectNotInPrerequisiteState as exc:  # said by a trigger, infra/migrations/0060
            raise Unavailable("The embedding model has just been changed; retry.", retry_after=1) from exc
        except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction) as exc:  # the latter: a failover
            raise DatabaseUnavailable("The database does not answer; retry.", retry_after=2) from exc
        except psycopg.DatabaseError as exc:
            # Whatever else it is, it is ours. The driver's own words may quote what was being written: they stop here.
            what = " ".join(filter(None, (type(exc).__name__, exc.sqlstate, exc.diag.constraint_name)))
            raise OctopusError(f"The database refused a statement: {what}.") from None

    async def all(self, tenant_id: str, query: LiteralString, params: Params | None = None) -> list[Row]:
        """Every row, in a transaction of its own."""
        async with self.transaction(tenant_id) as tx:
            return await tx.all(query, params)

    async def one(self, tenant_id: str, query: LiteralString, params: Params | None = None) -> Row | None:
        """The first row or None, in a transaction of its own."""
        async with self.transaction(tenant_id) as tx:
            return await tx.one(query, params)

    async def run(self, tenant_id: str, query: LiteralString, params: Params | None = None) -> int:
        """The number of rows touched, in a transaction of its own."""
        async with self.transaction(tenant_id) as tx:
            return await tx.run(query, params)
