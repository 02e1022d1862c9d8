"""Cut a document into chunks: by structure first, by tokens always.

A chunk never crosses a heading. It holds whole blocks where they fit, else whole sentences or lines, else words; it
ends before a block that would no longer fit, if it is half full by then. The next one repeats its last sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from octopus.embedding import Embedder
from octopus.semantic.types import Block, Passage

Strategy = Literal["structure", "sentence", "fixed"]

# After a full stop, question or exclamation mark and closing quotes; Chinese and Japanese set no blank.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n{2,}")
_WORD_END = re.compile(r"(?<=\s)(?=\S)")
_HALF = 0.5
_PART = 0.125  # of a chunk: what a sentence or line that does not fit is cut into
_LARGEST_HEADER = 0.25  # of a chunk; a larger one is not repeated


def share_of(tokens: int, count_tokens: Callable[[str], int], embedder: Embedder) -> Callable[[str], float]:
    """The measure of a chunker for a size in raw tokens that also keeps within what the embedder sees."""
    seen = embedder.max_tokens - 2

    def share(text: str) -> float:
        return max(count_tokens(text) / tokens, embedder.count_tokens(text) / seen)

    return share


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is never cut. `joint` stands before it unless it begins a chunk; then `header` does, if there is one."""

    text: str
    share: float
    joint: str
    page: int | None
    header: _Piece | None = None


class Chunker:
    """Cuts blocks into chunks.

    `share` says which part of the largest allowed chunk a text is: 1.0 is full. So one number holds for the chosen
    size in tokens and for what the embedding model sees, whichever is less. `overlap` is a share as well.
    """

    def __init__(self, share: Callable[[str], float], overlap: float, strategy: Strategy = "structure") -> None:
        self._share = share
        self._joint = share("\n\n")
        self._overlap = overlap
        self._strategy = strategy

    def chunks(self, blocks: Iterable[Block]) -> Iterator[Passage]:
        """The chunks in reading order, without blanks around them. Holds no more than one block and one chunk."""
        chunk = _Chunk(None, 1.0)
        for block in blocks:
            if block.heading != chunk.heading:
                if chunk.fresh:
                    yield chunk.passage()
                chunk = _Chunk(block.heading, 1.0 - (self._share(f"{block.heading}\n") if block.heading else 0.0))
            pieces = self._pieces(block, chunk.room)
            size = sum(piece.share for piece in pieces)
            for i, piece in enumerate(pieces):
                keep_whole = self._strategy == "structure" and i == 0 and chunk.filled > _HALF * chunk.room
                if chunk.fresh and chunk.filled + (size if keep_whole else piece.share) > chunk.room:
                    yield chunk.passage()
                    chunk = chunk.next(self._overlap, piece)
                chunk.add(piece)
        if chunk.fresh:
            yield chunk.passage()

    def _pieces(self, block: Block, room: float) -> list[_Piece]:
        """Lines, sentences or words of a block; its header first, and known to those that follow."""
        if self._strategy == "fixed":
            parts, joint = _WORD_END.split(block.text.strip()), ""
        elif block.kind == "lines":
            parts, joint = block.text.strip("\n").split("\n"), "\n"
        else:
            parts, joint = _SENTENCE_END.split(block.text.strip()), " "
        pieces: list[_Piece] = []
        header: _Piece | None = None
        if block.header:
            header = _Piece(block.header, self._share(block.header) + self._joint, "\n\n", block.page)
            pieces.append(header)
        repeated = header if header and header.share < _LARGEST_HEADER * room else None
        for part in parts:
            for i, (text, share) in enumerate(self._fitting(part, room - self._joint - _share(repeated))):
                before = ("" if i else joint) if pieces else "\n\n"
                before = "\n" if header and len(pieces) == 1 else before
                share += self._joint if "\n" in before else 0.0
                pieces.append(_Piece(text, share, before, block.page, repeated))
        return pieces

    def _fitting(self, text: str, room: float) -> Iterator[tuple[str, float]]:
        """The text with its share; in small parts, cut between words or within one too long, if it does not fit."""
        if not text.strip():
            return
        share = self._share(text)
        if share <= room:
            yield text, share
            return
        words = _WORD_END.split(text)
        units: Sequence[str] = words if len(words) > 1 else text
        size = max(1, int(len(units) * _PART * room / share))
        for start in range(0, len(units), size):
            yield from self._fitting("".join(units[start : start + size]), room)


def _share(header: _Piece | None) -> float:
    return header.share if header else 0.0


class _Chunk:
    """A chunk in the making. `fresh`: it holds more than what it repeats of the one before."""

    def __init__(self, heading: str | None, room: float) -> None:
        self.heading = heading
        self.room = room
        self.filled = 0.0
        self.fresh = False
        self._pieces: list[_Piece] = []

    def add(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        self.filled += piece.share
        self.fresh = True

    def next(self, overlap: float, piece: _Piece) -> _Chunk:
        """The chunk to add `piece` to: it repeats the last pieces of this one, below their header."""
        size, start = 0.0, len(self._pieces)
        for last in reversed(self._pieces):
            size += last.share
            if size > overlap or size + _share(last.header) + piece.share > self.room:
                break
            start -= 1
        repeated = self._pieces[start:]
        header = (repeated[0] if repeated else piece).header
        chunk = _Chunk(self.heading, self.room)
        for kept in [header, *repeated] if header else repeated:
            chunk.add(kept)
        chunk.fresh = False
        return chunk

    def passage(self) -> Passage:
        first, *others = self._pieces
        return Passage(
            (first.text + "".join(piece.joint + piece.text for piece in others)).strip(), self.heading, first.page
        )
