"""Plain text and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from octopus.semantic.types import Block

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def text_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """One block per paragraph: paragraphs are set apart by empty lines."""
    paragraph: list[str] = []
    for line in lines:
        if line.strip():
            paragraph.append(line.rstrip())
        elif paragraph:
            yield Block("\n".join(paragraph))
            paragraph = []
    if paragraph:
        yield Block("\n".join(paragraph))


def markdown_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """One block per paragraph, list, table or code fence, under the path of its headings: ``Guide > Setup``."""
    path: list[tuple[int, str]] = []
    block: list[str] = []
    fence: str | None = None
    kind = "prose"

    def finished() -> Iterator[Block]:
        nonlocal kind
        if block:
            heading = " > ".join(title for _, title in path) or None
            yield Block("\n".join(block), heading, kind="lines" if kind == "lines" else "prose")
            block.clear()
        kind = "prose"

    for raw in lines:
        line = raw.rstrip()
        opening = _FENCE.match(line)
        if fence:
            block.append(line)
            if opening and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
                yield from finished()
        elif opening:
            yield from finished()
            fence, kind = opening[1], "lines"
            block.append(line)
        elif heading := _HEADING.match(line):
            yield from finished()
            level, title = len(heading[1]), heading[2]
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, title))
        elif not line.strip():
            yield from finished()
        else:
            if line.lstrip().startswith("|"):
                kind = "lines"
            block.append(line)
    yield from finished()
