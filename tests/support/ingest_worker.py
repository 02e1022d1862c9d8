"""The real ingestion in a process of its own, to be killed: `python -m tests.support.ingest_worker KEY`.

Takes OCTOPUS_DATABASE_URL and OCTOPUS_BUCKET, and gives every embedded text a line in the file EMBEDDED_LOG.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from octopus.cloud.runtime import run
from octopus.cloud.wiring import services
from octopus.relevance import Vector
from tests.support.embedder import WordEmbedder


class LoggingEmbedder(WordEmbedder):
    """As slow as a real one, and says what it was paid for."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await asyncio.sleep(0.002 * len(texts))
        self.log(texts)
        return await super().embed(texts)

    def log(self, texts: Sequence[str]) -> None:
        with Path(os.environ["EMBEDDED_LOG"]).open("a") as log:
            log.writelines(f"{text!r}\n" for text in texts)


if __name__ == "__main__":
    vars(services()).update(embedder=LoggingEmbedder())
    print(run(services().ingest_document.ingest(sys.argv[1])), flush=True)
