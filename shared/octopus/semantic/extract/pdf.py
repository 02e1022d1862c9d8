"""PDF, by PDFium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pypdfium2 as pdfium

from octopus.errors import DocumentRejected
from octopus.semantic.types import Block


def pdf_blocks(path: Path, max_pages: int) -> Iterator[Block]:
    """One block per page that has text. Raises `DocumentRejected` for an encrypted, broken or scanned file."""
    try:
        document = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as exc:
        if "password" in str(exc).lower():
            raise DocumentRejected("The PDF is encrypted; upload it without a password.") from exc
        raise DocumentRejected("The PDF is damaged and cannot be opened; export it anew.") from exc
    with document:
        pages = len(document)
        if pages > max_pages:
            raise DocumentRejected(f"The PDF has {pages} pages; the limit is {max_pages}. Split it.")
        found = False
        for number in range(pages):
            page = document[number]
            text_page = page.get_textpage()
            text = text_page.get_text_bounded().replace("\r\n", "\n")
            text_page.close()
            page.close()
            if text.strip():
                found = True
                yield Block(text, page=number + 1)
        if not found:
            raise DocumentRejected("The PDF has no text, only images (a scan?); run it through text recognition first.")
