"""XLSX, by calamine, and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from python_calamine import CalamineError, CalamineWorkbook

from octopus.errors import DocumentRejected
from octopus.semantic.extract.rows import table_blocks
from octopus.semantic.types import Block

_SAMPLE_LINES = 20
_DELIMITERS = ",;\t|"


def xlsx_blocks(path: Path) -> Iterator[Block]:
    """The rows of every sheet, under its name. Formulas appear as the values that were saved with them."""
    try:
        workbook = CalamineWorkbook.from_path(str(path))
        for name in workbook.sheet_names:
            yield from table_blocks(workbook.get_sheet_by_name(name).iter_rows(), name)
    except CalamineError as exc:
        raise DocumentRejected("The workbook is damaged and cannot be read; save it anew.") from exc


def csv_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """The rows; the delimiter is the one that occurs most often in the first lines."""
    stream = iter(lines)
    sample = list(islice(stream, _SAMPLE_LINES))
    delimiter = max(_DELIMITERS, key="".join(sample).count)
    rows = csv.reader((f"{line}\n" for line in chain(sample, stream)), delimiter=delimiter)
    try:
        yield from table_blocks(rows, None)
    except csv.Error as exc:
        raise DocumentRejected(f"Line {rows.line_num} of the table cannot be read: {exc}.") from exc
