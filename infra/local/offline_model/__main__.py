"""Serve the offline model: `python -m infra.local.offline_model PORT`."""

from __future__ import annotations

import os
import sys

from infra.local.offline_model.app import create_app
from infra.local.serving import serve

if __name__ == "__main__":
    serve(create_app(delay_ms=float(os.environ.get("OCTOPUS_OFFLINE_DELAY_MS", "5"))), int(sys.argv[1]))
