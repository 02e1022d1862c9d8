"""Which function reads which kind of file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile

from lxml.etree import LxmlError

from octopus.errors import DocumentRejected
from octopus.semantic import media
from octopus.semantic.extract.encoding import text_lines
from octopus.semantic.extract.html import html_blocks
from octopus.semantic.extract.limits import Limits, within
from octopus.semantic.extract.markdown import markdown_blocks, text_blocks
from octopus.semantic.extract.office import docx_blocks, pptx_blocks
from octopus.semantic.extract.pdf import pdf_blocks
from octopus.semantic.extract.sheets import csv_blocks, xlsx_blocks
from octopus.semantic.extract.sniff import actual_type
from octopus.semantic.types import Block


def blocks(path: Path, declared: str, limits: Limits) -> Iterator[Block]:
    """The text of a file in reading order. Raises `DocumentRejected` with a reason for the owner of the document."""
    try:
        yield from within(limits, _read(path, actual_type(path, declared, limits), limits))
    except (LxmlError, BadZipFile, KeyError, EOFError, NotImplementedError, OSError, UnicodeError) as exc:
        raise DocumentRejected("The file is damaged and cannot be read; save it anew.") from exc
    except (MemoryError, RecursionError) as exc:
        raise DocumentRejected("The file is too complex to be read; split or simplify it.") from exc


def _read(path: Path, media_type: str, limits: Limits) -> Iterator[Block]:
    match media_type:
        case media.PDF:
            return pdf_blocks(path, limits)
        case media.DOCX:
            return docx_blocks(path)
        case media.PPTX:
            return pptx_blocks(path, limits)
        case media.XLSX:
            return xlsx_blocks(path)
        case media.HTML:
            return html_blocks(text_lines(path))
        case media.CSV:
            return csv_blocks(text_lines(path))
        case media.MARKDOWN:
            return markdown_blocks(text_lines(path))
        case _:
            return text_blocks(text_lines(path))
