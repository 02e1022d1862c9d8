"""DOCX and PPTX, streamed out of their archives by libxml2 without entities, DTD or network.

Element names are those of ECMA-376, part 1. Text that was inserted under change tracking is read and what was deleted
is not; macros, comments, page headers and pictures are left out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from lxml import etree

from octopus.errors import DocumentRejected
from octopus.semantic.extract.limits import Limits
from octopus.semantic.extract.markdown import HeadingPath
from octopus.semantic.extract.rows import table_block
from octopus.semantic.types import Block

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_HEADING_NAME = re.compile(r"heading (\d)", re.IGNORECASE)
_SAFE = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}


def docx_blocks(path: Path) -> Iterator[Block]:
    """One block per paragraph or table, under the path of its headings; footnotes last."""
    with _opened(path) as archive:
        levels = _heading_levels(archive)
        headings = HeadingPath()
        yield from _word_blocks(archive, "word/document.xml", levels, headings)
        for notes in ("footnotes", "endnotes"):
            if f"word/{notes}.xml" in archive.namelist():
                headings = HeadingPath()
                headings.enter(1, notes.capitalize())
                yield from _word_blocks(archive, f"word/{notes}.xml", {}, headings)


def pptx_blocks(path: Path, limits: Limits) -> Iterator[Block]:
    """One block per paragraph group of a slide, with its number as page and its title as heading; then its notes."""
    with _opened(path) as archive:
        relations = _relations(archive, "ppt/presentation.xml")
        slides = [
            relations.get(slide.get(f"{_R}id", ""))
            for slide in _tree(archive, "ppt/presentation.xml").iter(f"{_P}sldId")
        ]
        if len(slides) > limits.pages:
            raise DocumentRejected(f"The presentation has {len(slides)} slides; the limit is {limits.pages}. Split it.")
        for number, slide in enumerate(slides, 1):
            yield from _slide_blocks(archive, slide, number) if slide else ()


def _opened(path: Path) -> ZipFile:
    try:
        return ZipFile(path)
    except BadZipFile as exc:
        raise DocumentRejected("The file is damaged: its archive cannot be opened.") from exc


def _tree(archive: ZipFile, part: str) -> etree._Element:
    with archive.open(part) as file:
        return etree.parse(file, etree.XMLParser(**_SAFE)).getroot()


# Word


def _word_blocks(archive: ZipFile, part: str, levels: Mapping[str, int], headings: HeadingPath) -> Iterator[Block]:
    tables = 0
    with archive.open(part) as file:
        for event, element in etree.iterparse(file, events=("start", "end"), tag=(f"{_W}p", f"{_W}tbl"), **_SAFE):
            if element.tag == f"{_W}tbl":
                tables += 1 if event == "start" else -1
            if event == "start" or tables:
                continue
            if element.tag == f"{_W}tbl":
                rows = (map(_word_text, _nearest(row, "tc")) for row in _nearest(element, "tr"))
                yield from table_block(rows, str(headings) or None)
            elif text := _word_text(element).strip():
                style = element.find(f"{_W}pPr/{_W}pStyle")
                level = levels.get(style.get(f"{_W}val", "")) if style is not None else None
                if level:
                    headings.enter(level, text)
                else:
                    listed = element.find(f"{_W}pPr/{_W}numPr") is not None
                    yield Block(f"- {text}" if listed else text, str(headings) or None)
            _forget(element)


def _nearest(table: etree._Element, name: str) -> Iterator[etree._Element]:
    """The rows of a table or the cells of a row, whatever wraps them, but none of a table within."""
    for child in table:
        if child.tag == f"{_W}{name}":
            yield child
        elif child.tag != f"{_W}tbl":
            yield from _nearest(child, name)


def _word_text(element: etree._Element) -> str:
    """The text of a paragraph or cell as it reads now."""
    for double in list(element.iter(_FALLBACK)):
        double.clear()
    parts: list[str] = []
    for node in element.iter(f"{_W}t", f"{_W}tab", f"{_W}br", f"{_W}cr", f"{_W}p", f"{_W}noBreakHyphen"):
        match etree.QName(node).localname:
            case "t":
                parts.append(node.text or "")
            case "tab":
                parts.append("\t")
            case "noBreakHyphen":
                parts.append("-")
            case _:
                parts.append("\n")
    return "".join(parts)


def _heading_levels(archive: ZipFile) -> dict[str, int]:
    """Heading levels by style id: of styles called ``heading 1`` and the like, ``Title``, and styles based on them."""
    if "word/styles.xml" not in archive.namelist():
        return {}
    levels: dict[str, int] = {}
    based_on: dict[str, str] = {}
    for style in _tree(archive, "word/styles.xml").iter(f"{_W}style"):
        style_id = style.get(f"{_W}styleId", "")
        name = style.find(f"{_W}name")
        base = style.find(f"{_W}basedOn")
        called = name.get(f"{_W}val", "") if name is not None else ""
        if found := _HEADING_NAME.match(called):
            levels[style_id] = int(found[1])
        elif called.lower() == "title":
            levels[style_id] = 1
        elif base is not None:
            based_on[style_id] = base.get(f"{_W}val", "")
    for style_id in based_on:
        ancestor, steps = style_id, 0
        while ancestor in based_on and steps < 10:
            ancestor, steps = based_on[ancestor], steps + 1
        if ancestor in levels:
            levels[style_id] = levels[ancestor]
    return levels


def _forget(element: etree._Element) -> None:
    """Free what has been read, and the empty shells before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and parent[0] is not element:
        del parent[0]


# PowerPoint


def _slide_blocks(archive: ZipFile, part: str, number: int) -> Iterator[Block]:
    slide = _tree(archive, part)
    title = ""
    for shape in slide.iter(f"{_P}sp"):
        placeholder = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
        if placeholder is not None and placeholder.get("type") in ("title", "ctrTitle"):
            title = title or " ".join(_drawing_text(shape).split())
            shape.clear()
    heading = title[:200] or None
    if title:
        yield Block(title, None, number)
    for shape in slide.iter(f"{_P}sp", f"{_P}graphicFrame"):
        table = next(shape.iter(f"{_A}tbl"), None)
        if table is not None:
            rows = (map(_drawing_text, row.iterchildren(f"{_A}tc")) for row in table.iter(f"{_A}tr"))
            yield from table_block(rows, heading, number)
        elif text := _drawing_text(shape).strip():
            yield Block(text, heading, number)
    for target in _relations(archive, part).values():
        if "/notesSlides/" in target:
            notes = _tree(archive, target)
            for shape in notes.iter(f"{_P}sp"):
                placeholder = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
                if placeholder is not None and placeholder.get("type") == "body" and (text := _drawing_text(shape)):
                    yield Block(text, heading, number)


def _drawing_text(shape: etree._Element) -> str:
    paragraphs = (
        "".join((node.text or "") if node.tag == f"{_A}t" else "\n" for node in p.iter(f"{_A}t", f"{_A}br"))
        for p in shape.iter(f"{_A}p")
    )
    return "\n".join(text for text in paragraphs if text.strip())


def _relations(archive: ZipFile, part: str) -> dict[str, str]:
    """The parts that a part refers to, by relation id."""
    folder, name = posixpath.split(part)
    relations = f"{folder}/_rels/{name}.rels"
    if relations not in archive.namelist():
        return {}
    return {
        relation.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
        for relation in _tree(archive, relations)
        if relation.get("TargetMode") != "External"
    }
