"""The real ingestion in a process of its own, to be killed: `python -m tests.support.ingest_worker KEY`.

Takes OCTOPUS_DATABASE_URL and OCTOPUS_BUCKET, and gives every embedded text a line in the file EMBEDDED_LOG.
"""

from __future__ import annotations

import sys

from octopus.cloud.runtime import run
from octopus.cloud.wiring import services
from tests.support.embedder import LoggingEmbedder

if __name__ == "__main__":
    vars(services()).update(embedder=LoggingEmbedder())
    print(run(services().ingest_document.ingest(sys.argv[1])), flush=True)
