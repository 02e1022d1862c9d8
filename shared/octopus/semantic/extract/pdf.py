"""PDF, by PDFium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pypdfium2 as pdfium
from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

from octopus.errors import DocumentRejected
from octopus.semantic.extract.limits import Limits
from octopus.semantic.extract.markdown import HeadingPath
from octopus.semantic.types import Block

_HYPHEN = re.compile(r"[\ufffe\x02]\s*")  # how PDFium marks a hyphen at the end of a line
_IMAGE_DEPTH = 3  # images within forms within forms


def pdf_blocks(path: Path, limits: Limits) -> Iterator[Block]:
    """The text of each page, parted where a bookmark begins. A file without bookmarks has no headings.

    Raises `DocumentRejected` for a file that is encrypted, broken, too long, or mostly scanned.
    """
    try:
        document = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as exc:
        if "password" in str(exc).lower():
            raise DocumentRejected("The PDF is encrypted; save it without a password.") from exc
        raise DocumentRejected("The PDF is damaged and cannot be opened; export it anew.") from exc
    pages = len(document)
    if pages > limits.pages:
        raise DocumentRejected(f"The PDF has {pages} pages; the limit is {limits.pages}. Split it.")
    bookmarks = _bookmarks(document)
    headings = HeadingPath()
    with_text = scanned = 0
    for index in range(pages):
        text, has_image = _page(document, index)
        with_text += bool(text.strip())
        scanned += has_image
        yield from _parted(text, index + 1, bookmarks.get(index, []), headings)
    if scanned > with_text:
        raise DocumentRejected(
            f"{scanned} of {pages} pages are pictures without text (a scan?); run the PDF through text recognition."
        )


def _page(document: pdfium.PdfDocument, index: int) -> tuple[str, bool]:
    """The text of a page; and whether it has pictures instead."""
    try:
        page = document[index]
        text = _HYPHEN.sub("", page.get_textpage().get_text_bounded().replace("\r\n", "\n"))
        images = () if text.strip() else page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE], max_depth=_IMAGE_DEPTH)
        has_image = any(True for _ in images)
        page.close()  # with all that was made of it
    except pdfium.PdfiumError:
        return "", False  # a page that is broken; the others are not
    return text, has_image


def _bookmarks(document: pdfium.PdfDocument) -> dict[int, list[tuple[int, str]]]:
    """Levels and titles of the bookmarks, by the page that they point to."""
    found: dict[int, list[tuple[int, str]]] = {}
    for bookmark in document.get_toc():
        destination = bookmark.get_dest()
        index = destination.get_index() if destination else None
        title = bookmark.get_title().strip()
        if index is not None and title:
            found.setdefault(index, []).append((bookmark.level, title))
    return found


def _parted(text: str, page: int, bookmarks: list[tuple[int, str]], headings: HeadingPath) -> Iterator[Block]:
    """The page in parts: each bookmark's begins after its title in the text, if that is there."""
    for level, title in bookmarks:
        words = [re.escape(word) for word in title.split()[:20]]
        place = re.search(r"\s+".join(words), text, re.IGNORECASE)
        before, text = (text[: place.start()], text[place.end() :]) if place else ("", text)
        if before.strip():
            yield Block(before, str(headings) or None, page)
        headings.enter(level + 1, title)
    if text.strip():
        yield Block(text, str(headings) or None, page)
