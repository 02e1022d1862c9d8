"""Cut a document into chunks: by structure first, by tokens always.

A chunk holds whole blocks where they fit, else whole sentences or lines, else words; it never crosses a heading. It
ends with the block that would no longer fit, if it is half full by then, and the next one repeats its last sentences.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from octopus.embedding import Embedder
from octopus.semantic.types import Block, Passage

Strategy = Literal["structure", "sentence", "fixed"]

# After a full stop, question or exclamation mark and closing quotes; Chinese and Japanese set no blank.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n{2,}")
_WORD_END = re.compile(r"(?<=\s)(?=\S)")
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is never cut. `joint` stands before it unless it begins a chunk."""

    text: str
    share: float
    joint: str
    page: int | None
    opens_block: bool


def share_of(tokens: int, count_tokens: Callable[[str], int], embedder: Embedder) -> Callable[[str], float]:
    """The measure of a chunker for a size in raw tokens that also keeps within what the embedder sees."""
    seen = embedder.max_tokens - 2

    def share(text: str) -> float:
        return max(count_tokens(text) / tokens, embedder.count_tokens(text) / seen)

    return share


class Chunker:
    """Cuts blocks into chunks of at most one share.

    `share` says which part of the largest allowed chunk a text is: 1.0 is full. So one number holds for the chosen
    size in tokens and for what the embedding model sees, whichever is less. `overlap` is a share as well.
    """

    def __init__(self, share: Callable[[str], float], overlap: float, strategy: Strategy = "structure") -> None:
        self._share = share
        self._overlap = overlap
        self._strategy = strategy

    def chunks(self, blocks: Iterable[Block]) -> Iterator[Passage]:
        """The chunks in reading order, without blanks around them. Holds no more than one block and one chunk."""
        heading: str | None = None
        chunk: deque[_Piece] = deque()
        fresh = False  # the chunk holds more than what it repeats
        room = 1.0
        for block in blocks:
            if block.heading != heading or not chunk:
                if fresh:
                    yield _passage(chunk, heading)
                chunk, fresh, heading = deque(), False, block.heading
                room = 1.0 - (self._share(f"{heading}\n") if heading else 0.0)
            pieces = self._pieces(block, room)
            block_share = sum(piece.share for piece in pieces)
            for piece in pieces:
                filled = sum(p.share for p in chunk)
                whole_block_later = (
                    self._strategy == "structure"
                    and piece.opens_block
                    and filled > _HALF * room
                    and filled + block_share > room
                )
                if fresh and (whole_block_later or filled + piece.share > room):
                    yield _passage(chunk, heading)
                    self._repeat(chunk, room - piece.share)
                    fresh = False
                chunk.append(piece)
                fresh = True
        if fresh:
            yield _passage(chunk, heading)

    def _repeat(self, chunk: deque[_Piece], room: float) -> None:
        """Leave of the chunk only the last pieces that fit into the overlap."""
        allowed = min(self._overlap, room)
        kept = 0.0
        keep = 0
        for piece in reversed(chunk):
            if kept + piece.share > allowed:
                break
            kept += piece.share
            keep += 1
        while len(chunk) > keep:
            chunk.popleft()

    def _pieces(self, block: Block, room: float) -> list[_Piece]:
        lines = block.kind == "lines"
        text = block.text.strip("\n") if lines else block.text.strip()
        if self._strategy == "fixed":
            parts, joint = _WORD_END.split(text), ""
        elif lines:
            parts, joint = text.split("\n"), "\n"
        else:
            parts, joint = _SENTENCE_END.split(text), " "
        pieces: list[_Piece] = []
        for part in parts:
            for i, fitting in enumerate(self._fitting(part, room)):
                if not fitting.strip():
                    continue
                before = "\n\n" if not pieces else ("" if i else joint)
                pieces.append(
                    _Piece(fitting, self._share(before + fitting), before, block.page, opens_block=not pieces)
                )
        return pieces

    def _fitting(self, text: str, room: float) -> Iterator[str]:
        """The text in parts that fit: cut between words, and within a word only if it alone is too long."""
        share = self._share(text)
        if share <= room:
            yield text
            return
        words = _WORD_END.split(text)
        middle = len(words) // 2
        if middle:
            halves = "".join(words[:middle]), "".join(words[middle:])
        else:
            halves = text[: len(text) // 2], text[len(text) // 2 :]
        for half in halves:
            yield from self._fitting(half, room)


def _passage(chunk: Iterable[_Piece], heading: str | None) -> Passage:
    pieces = list(chunk)
    text = pieces[0].text + "".join(piece.joint + piece.text for piece in pieces[1:])
    return Passage(text.strip(), heading, pieces[0].page)
