"""Which way to read a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from octopus.errors import DocumentRejected
from octopus.semantic.extract.pdf import pdf_blocks
from octopus.semantic.extract.plain import markdown_blocks, text_blocks
from octopus.semantic.types import Block

MEDIA_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".txt": "text/plain",
    ".pdf": "application/pdf",
}


def media_type_of(file_name: str, declared: str | None = None) -> str | None:
    """What the name's ending stands for, else the declared type; None if neither can be read."""
    known = MEDIA_TYPES.get(PurePosixPath(file_name.lower()).suffix)
    return known or (declared if declared in MEDIA_TYPES.values() else None)


class FileReader:
    """Implements `octopus.semantic.ports.Reader`."""

    def __init__(self, max_pages: int) -> None:
        self._max_pages = max_pages

    def blocks(self, path: Path, media_type: str) -> Iterator[Block]:
        match media_type:
            case "application/pdf":
                yield from pdf_blocks(path, self._max_pages)
            case "text/markdown":
                yield from markdown_blocks(_lines(path))
            case "text/plain":
                yield from text_blocks(_lines(path))
            case _:
                raise DocumentRejected(f"Documents of type {media_type} cannot be read.")


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from file
    except UnicodeDecodeError as exc:
        raise DocumentRejected("The text is not UTF-8; save it as UTF-8.") from exc
