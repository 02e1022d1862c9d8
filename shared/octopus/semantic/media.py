"""Which files can be read."""

from __future__ import annotations

from pathlib import PurePosixPath

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
HTML = "text/html"
CSV = "text/csv"
MARKDOWN = "text/markdown"
TEXT = "text/plain"

MEDIA_TYPES = {
    ".pdf": PDF,
    ".docx": DOCX,
    ".pptx": PPTX,
    ".xlsx": XLSX,
    ".html": HTML,
    ".htm": HTML,
    ".csv": CSV,
    ".tsv": CSV,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".txt": TEXT,
}


def media_type_of(file_name: str, declared: str | None = None) -> str | None:
    """What the name's ending stands for, else the declared type; None if neither can be read."""
    known = MEDIA_TYPES.get(PurePosixPath(file_name.lower()).suffix)
    return known or (declared if declared in MEDIA_TYPES.values() else None)
