"""Rows of a table as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from octopus.semantic.types import Block

_ROWS = 100  # in one block, to hold no more of a long table


def row_line(cells: Iterable[object]) -> str:
    """``a | b | c``, without line ends in cells and without empty cells at the end."""
    texts = [_text(cell) for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return " | ".join(texts)


def table_block(
    rows: Iterable[Iterable[object]], heading: str | None, page: int | None = None, *, has_header: bool = True
) -> Iterator[Block]:
    """The rows that are not empty as one block, if there are any; the first one is the header of the others."""
    lines = [line for line in map(row_line, rows) if line]
    header = lines.pop(0) if has_header and len(lines) > 1 else None
    if lines:
        yield Block("\n".join(lines), heading, page, "lines", header)


def table_blocks(rows: Iterable[Iterable[object]], heading: str | None) -> Iterator[Block]:
    """The same for a table of any length, in several blocks."""
    lines = (line for line in map(row_line, rows) if line)
    header = next(lines, None)
    first = list(islice(lines, _ROWS))
    if header and not first:
        yield Block(header, heading, kind="lines")
    while first:
        yield Block("\n".join(first), heading, kind="lines", header=header)
        first = list(islice(lines, _ROWS))


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return " ".join(str(cell).split())
