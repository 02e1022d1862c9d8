"""What was said in a session, as lines: the raw log and nothing that was recalled into a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from octopus.conversations.types import Block, Message, text_of
from octopus.episodic.ports import TokenCounter

Speaker = Literal["User", "Assistant", "Tool"]

# A tool's result may be a whole table; the answer that follows says what mattered of it.
LONGEST_RESULT = 1_000  # characters


@dataclass(frozen=True, slots=True)
class Line:
    """One message, or a piece of one. `seq` is its place in the log."""

    seq: int
    speaker: Speaker
    text: str
    at: datetime

    @property
    def date(self) -> str:
        return self.at.astimezone(UTC).strftime("%Y-%m-%d")


def transcript(messages: Iterable[Message]) -> list[Line]:
    """Lines in the order of the log; a message without text and without tools has none."""
    return [line for message in messages for line in _lines(message)]


def dialogue(lines: Iterable[Line]) -> list[Line]:
    """What user and assistant said to each other."""
    return [line for line in lines if line.speaker != "Tool"]


def rendered(line: Line) -> str:
    """A line as the model reads it. Further lines of the text are indented, so that none can pose as a speaker's."""
    text = line.text.replace("\n", "\n  ").replace("</transcript", "<\\/transcript")
    return f"{line.speaker} [{line.seq}, {line.at.astimezone(UTC):%A} {line.date}]: {text}"


def parts(lines: Sequence[Line], count: TokenCounter, limit: int) -> Iterator[list[Line]]:
    """The lines in runs of at most `limit` raw tokens as rendered; a line that is longer is cut into pieces."""
    part: list[Line] = []
    filled = 0
    for piece in (piece for line in lines for piece in _pieces(line, count, limit)):
        tokens = count(rendered(piece)) + 1
        if part and filled + tokens > limit:
            yield part
            part, filled = [], 0
        part.append(piece)
        filled += tokens
    if part:
        yield part


def _pieces(line: Line, count: TokenCounter, limit: int) -> list[Line]:
    tokens = count(rendered(line))
    if tokens < limit or len(line.text) < 2:
        return [line]
    half = len(line.text) // 2
    halves = replace(line, text=line.text[:half]), replace(line, text=line.text[half:])
    return [piece for part in halves for piece in _pieces(part, count, limit)]


def _lines(message: Message) -> Iterator[Line]:
    for block in message.content:
        if block["type"] == "tool_use":
            yield Line(message.seq, "Tool", f"{block['name']} is called.", message.created_at)
        elif block["type"] == "tool_result":
            yield Line(message.seq, "Tool", _result(block), message.created_at)
    text = text_of(message.content).strip()
    if text and message.role != "tool":
        speaker: Speaker = "User" if message.role == "user" else "Assistant"
        yield Line(message.seq, speaker, text, message.created_at)


def _result(block: Block) -> str:
    content = block.get("content") or ""
    text = content if isinstance(content, str) else text_of(content)
    return text if len(text) <= LONGEST_RESULT else text[:LONGEST_RESULT] + " …"
