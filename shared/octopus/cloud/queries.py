"""Named SQL queries: ``-- name --`` starts a query, a comment line describes it, the statement follows."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)


@cache
def load_queries(package: str, file: str = "queries.sql") -> dict[str, LiteralString]:
    """The queries of `file` in `package`, by name. Raises ValueError for a name that occurs twice."""
    parts = _NAME.split(files(package).joinpath(file).read_text("utf-8"))
    names, bodies = parts[1::2], parts[2::2]
    if len(set(names)) != len(names):
        raise ValueError(f"{package}/{file} defines a query twice")
    return {name: cast("LiteralString", body.strip()) for name, body in zip(names, bodies, strict=True)}
