"""Print the unzipped size of each built function with its layer, and fail where one is over its limit."""

from __future__ import annotations

import sys
from pathlib import Path

LIMITS_MB = {"ChatFunction": 110}
LIMIT_MB = 150  # Lambda's own is 250 with all layers; the rest is left to layers that a company must add
LAYER = "SharedLayer"
ADAPTER_MB = 6  # Lambda Web Adapter, a layer that AWS publishes: an estimate, for it cannot be had without an account


def size_mb(directory: Path) -> float:
    """Megabytes (10^6) in the files under `directory`."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 1e6


def main(build: Path) -> int:
    layer = size_mb(build / LAYER)
    print(f"{LAYER:24}{layer:7.1f} MB")
    over = 0
    for function in sorted(build.glob("*Function")):
        limit = LIMITS_MB.get(function.name, LIMIT_MB)
        own = size_mb(function)
        total = own + layer + (ADAPTER_MB if function.name == "ChatFunction" else 0)
        over += total > limit
        verdict = "OVER the limit of" if total > limit else "of"
        print(f"{function.name:24}{total:7.1f} MB {verdict} {limit} MB, {own:.2f} MB its own")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".aws-sam/build")))
