"""Plain text and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from octopus.semantic.types import Block

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-*:?\s*)*$")
_LONGEST_BLOCK = 64 * 1024


class HeadingPath:
    """The headings above a place, outermost first, as ``Guide > Setup``."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []

    def enter(self, level: int, title: str) -> None:
        """A heading of this level ends all of its level or deeper."""
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, " ".join(title.split())[:200]))

    def __str__(self) -> str:
        return " > ".join(title for _, title in self._path if title)


def text_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """One block per paragraph: paragraphs are set apart by empty lines."""
    paragraph: list[str] = []
    size = 0
    for line in lines:
        if line.strip():
            paragraph.append(line.rstrip())
            size += len(line)
        if paragraph and (size > _LONGEST_BLOCK or not line.strip()):
            yield Block("\n".join(paragraph))
            paragraph, size = [], 0
    if paragraph:
        yield Block("\n".join(paragraph))


def markdown_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """One block per paragraph, list, table or code fence, under the path of its headings."""
    path = HeadingPath()
    for kind, group in _groups(lines):
        if kind == "heading":
            marks, title = group
            path.enter(len(marks), title)
        elif kind == "table":
            header = "\n".join(group[:2]) if len(group) > 2 and _RULE.match(group[1]) else None
            rows = group[2:] if header else group
            yield Block("\n".join(rows), str(path) or None, kind="lines", header=header)
        else:
            yield Block("\n".join(group), str(path) or None, kind="lines" if kind == "code" else "prose")


_Kind = Literal["heading", "prose", "table", "code"]


def _groups(lines: Iterable[str]) -> Iterator[tuple[_Kind, list[str]]]:
    """Lines that belong together; a heading as its marks and its title."""
    group: list[str] = []
    kind: _Kind = "prose"
    fence: str | None = None
    size = 0
    for raw in lines:
        line = raw.rstrip()
        mark = _FENCE.match(line)
        if fence:
            group.append(line)
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                yield kind, group
                group, kind, fence, size = [], "prose", None, 0
            continue
        heading = _HEADING.match(line)
        table = line.lstrip().startswith("|")
        if group and (mark or heading or not line or table != (kind == "table") or size > _LONGEST_BLOCK):
            yield kind, group
            group, size = [], 0
        if heading:
            yield "heading", [heading[1], heading[2]]
        elif line:
            kind, fence = ("code", mark[1]) if mark else ("table" if table else "prose", None)
            group.append(line)
            size += len(line)
    if group:
        yield kind, group
