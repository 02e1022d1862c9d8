"""A worker of a change of the embedding model, in a process of its own: `python -m tests.support.reembed_worker`.

Takes the settings OCTOPUS_DATABASE_URL and OCTOPUS_SWEEP_DATABASE_URL, and gives every embedded text a line in the file
EMBEDDED_LOG.
"""

from __future__ import annotations

import asyncio
import os
import time

from octopus.cloud.database import Database
from tests.support.embedder import LoggingEmbedder
from tests.support.spaces import Wide, change_of


class LoggingWide(LoggingEmbedder, Wide):
    """A model of its own that says what it was paid for."""


async def work() -> None:
    database = Database.at(os.environ["OCTOPUS_DATABASE_URL"], pool_size=2)
    sweep = Database.at(os.environ["OCTOPUS_SWEEP_DATABASE_URL"], pool_size=2)
    progress = await change_of(database, sweep, LoggingWide(), lease_s=0.0).work(time.monotonic() + 60)
    print(progress.current, flush=True)
    await database.close()
    await sweep.close()


if __name__ == "__main__":
    asyncio.run(work())
