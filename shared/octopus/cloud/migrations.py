"""Apply the SQL files of a directory, each once, in the order of their names.

One transaction per file, recorded with its checksum; an advisory lock keeps a second runner waiting; a file that
changed after it was applied, or a database that is ahead of the directory (a downgrade), is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import psycopg

from octopus.cloud.queries import load_queries
from octopus.errors import OctopusError

_SQL = load_queries(__package__, "migrations.sql")

# CloudFormation rolls a failed deployment back with the same request as a deliberate downgrade. What was applied less
# than this ago belongs to the deployment that is being rolled back; the older code runs with it, for migrations add.
ROLLBACK_S = 2 * 3600.0


class MigrationRefused(OctopusError):
    """The database and the migration files disagree."""


async def migrate(owner_dsn: str, directory: Path, *, ahead_s: float = 0.0) -> list[str]:
    """Bring the schema up to date; returns the names of the files applied now, in order.

    A database that is ahead of the directory, but has been for less than `ahead_s` seconds, is left as it is.

    Raises `MigrationRefused` for a changed or missing file; psycopg's own error, with the file's name as a note, for
    SQL that fails, in which case that file left no trace.
    """
    files = await asyncio.to_thread(_read, directory)
    async with await psycopg.AsyncConnection.connect(owner_dsn, autocommit=True) as connection:
        await connection.execute(_SQL["lock_migrations"])
        await connection.execute(_SQL["create_migrations"])
        recorded = await _recorded(connection)
        if _refuse_disagreement(recorded, files, ahead_s):
            return []
        pending = [name for name in files if name not in recorded]
        for name in pending:
            try:
                async with connection.transaction():
                    await connection.execute(files[name].encode())
                    await connection.execute(_SQL["record_migration"], (name, _checksum(files[name])))
            except psycopg.Error as exc:
                exc.add_note(f"while applying {name}")
                raise
    return pending


def _read(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in sorted(directory.glob("*.sql"))}


async def _recorded(connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> dict[str, tuple[str, float]]:
    """Checksum and age in seconds of what has been applied, by name."""
    rows = await (await connection.execute(_SQL["recorded_migrations"])).fetchall()
    return {name: (checksum, age) for name, checksum, age in rows}


def _refuse_disagreement(recorded: dict[str, tuple[str, float]], files: dict[str, str], ahead_s: float) -> bool:
    """Whether the database is ahead and may be."""
    ahead = False
    for name, (checksum, age) in recorded.items():
        if name not in files:
            if age >= ahead_s:
                raise MigrationRefused(f"The database has {name}, which this release does not: deploy a newer one.")
            ahead = True
        elif _checksum(files[name]) != checksum:
            raise MigrationRefused(f"{name} has changed since it was applied: add a new migration instead.")
    return ahead


def _checksum(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()
