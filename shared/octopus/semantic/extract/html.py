"""HTML, by libxml2 as a stream of events: no tree is built, no script runs, nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lxml import etree

from octopus.semantic.extract.markdown import HeadingPath
from octopus.semantic.extract.rows import table_block
from octopus.semantic.types import Block

_SKIPPED = frozenset({
    "script", "style", "nav", "footer", "aside", "noscript", "template", "svg", "math", "iframe", "object", "select",
    "button", "head",
})  # fmt: skip
_INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "q", "ruby", "rt", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time",
    "tt", "u", "var", "wbr",
})  # fmt: skip
_LEVELS = {f"h{level}": level for level in range(1, 7)}


def html_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """One block per paragraph, list item, table or preformatted text, under the path of its headings."""
    page = _Page()
    parser = etree.HTMLParser(target=page, no_network=True, remove_comments=True, remove_pis=True)
    for line in lines:
        parser.feed(f"{line}\n")
        yield from page.take()
    parser.close()
    yield from page.take()


class _Page:
    """Collects blocks from what the parser sees."""

    def __init__(self) -> None:
        self._path = HeadingPath()
        self._blocks: list[Block] = []
        self._text: list[str] = []
        self._skipped = 0
        self._preformatted = 0
        self._tables: list[_Table] = []

    def take(self) -> list[Block]:
        blocks, self._blocks = self._blocks, []
        return blocks

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _SKIPPED:
            self._skipped += 1
        elif tag == "br":
            self._text.append("\n")
        elif tag not in _INLINE:
            self._finish()
            self._preformatted += tag == "pre"
            if tag == "table":
                self._tables.append(_Table())
            elif tag == "tr" and self._tables:
                self._tables[-1].rows.append([])
            elif tag == "th" and self._tables and len(self._tables[-1].rows) == 1:
                self._tables[-1].has_header = True

    def end(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipped = max(0, self._skipped - 1)
        elif tag in _LEVELS:
            title = "".join(self._text)
            self._text.clear()
            self._path.enter(_LEVELS[tag], title)
        elif tag not in _INLINE:
            self._finish(cell=tag in ("td", "th"))
            self._preformatted -= tag == "pre"
            if tag == "table" and self._tables:
                self._blocks += self._tables.pop().blocks(self._heading)

    def data(self, text: str) -> None:
        if not self._skipped:
            self._text.append(text)

    def close(self) -> None:
        self._finish()
        while self._tables:
            self._blocks += self._tables.pop().blocks(self._heading)

    @property
    def _heading(self) -> str | None:
        return str(self._path) or None

    def _finish(self, *, cell: bool = False) -> None:
        """What was collected becomes a cell within a table, else a block."""
        text = "".join(self._text)
        self._text.clear()
        if self._tables and self._tables[-1].rows:
            self._tables[-1].add(text, cell=cell)
        elif text.strip():
            if self._preformatted:
                self._blocks.append(Block(text.strip("\n"), self._heading, kind="lines"))
            else:
                self._blocks.append(Block(" ".join(text.split()), self._heading))


class _Table:
    """Rows of cells. A table of one column is layout, and prose."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.has_header = False
        self._cell = ""

    def add(self, text: str, *, cell: bool) -> None:
        self._cell += f" {text}"
        if cell:
            self.rows[-1].append(self._cell)
            self._cell = ""

    def blocks(self, heading: str | None) -> Iterator[Block]:
        rows = [row for row in self.rows if any(cell.strip() for cell in row)]
        if all(len(row) < 2 for row in rows):
            for row in rows:
                yield Block(" ".join(row[0].split()), heading)
        else:
            yield from table_block(rows, heading, has_header=self.has_header)
