"""Find, in what the model was given, the sentences that share most words with the question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from infra.local.offline_model.request import Json, blocks

Kind = Literal["procedure", "knowledge", "episode", "history"]

HEADER = re.compile(
    r"^\[(?:Procedure: (?P<name>[^\]]+)|(?P<kind>Retrieved Knowledge|Past Conversation Context))\]", re.MULTILINE
)
SUMMARY = re.compile(r"^\[Earlier conversation summary\]: ")
SOURCE = re.compile(r"^Source: *(.+)$")
RULE = "---"
STEP = re.compile(r"^Step \d+:|^→")
EPISODE = re.compile(r"^(?:- )?(\d{4}-\d\d-\d\d): (.+)$|^• (.+)$")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\w\"'“(*])")
LIST_ITEM = re.compile(r"^(?:[-*#|>]|\d+[.)]) *")
WORD = re.compile(r"\w+")
STOP_WORDS = frozenset(
    WORD.findall(
        """a about after all also am an and any are as at be been before but by can could did do does for
        from get give had has have he her him his how i if in into is it its just know let like may me
        more much my need no not of on one or our please say she should so some tell than that the their
        them then there these they this those to too under up us want was we were what when where which
        who whom why will with would you your"""
    )
)


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that the model was given, and where it stood: a document, a procedure, or nothing more to
    say."""

    kind: Kind
    source: str
    text: str


def content_words(text: str) -> set[str]:
    """Words that carry meaning, without the commonest English endings."""
    words = {word for word in WORD.findall(text.lower()) if word not in STOP_WORDS}
    return {re.sub(r"(?<=\w{3})(?:ing|ed|es|s)$", "", word) for word in words}


def sentences(text: str) -> list[str]:
    """The sentences of some prose or Markdown; a line break ends one only before a blank line or a list
    item."""
    paragraphs: list[str] = [""]
    for line in map(str.strip, text.splitlines()):
        if not line or LIST_ITEM.match(line):
            paragraphs.append("")
        paragraphs[-1] = f"{paragraphs[-1]} {LIST_ITEM.sub('', line)}".strip()
        if line.startswith("#"):
            paragraphs.append("")
    return [found.strip() for paragraph in paragraphs for found in SENTENCE.split(paragraph) if found.strip()]


def question(messages: list[Json]) -> str:
    """The last text block of the last message: what the user asks."""
    return (_texts(messages[-1]) or [""])[-1]


def quotes(body: Json) -> Iterator[Quote]:
    """Everything quotable in a request, in its order: memory sections wherever they stand, then what the user
    said earlier in this conversation."""
    texts = [block["text"] for block in blocks(body.get("system") or []) if block["type"] == "text"]
    for text in texts:
        yield from _sections(text)
    said = [text for message in body["messages"] if message["role"] == "user" for text in _texts(message)]
    for text in said[:-1]:
        if HEADER.search(text):
            yield from _sections(text)
        else:
            yield from (Quote("history", "", sentence) for sentence in sentences(SUMMARY.sub("", text)))


def closest(candidates: Iterable[Quote], asked: str, *, most: int) -> list[Quote]:
    """At most `most` of the candidates, those that share most content words with `asked` first; none that
    share none."""
    wanted = content_words(asked)
    scored = [
        (len(wanted & content_words(f"{quote.source} {quote.text}")), quote) for quote in dict.fromkeys(candidates)
    ]
    chosen: list[Quote] = []
    for score, quote in sorted(scored, key=lambda pair: -pair[0]):
        said = any(quote.text in other.text or other.text in quote.text for other in chosen)
        if score and not said and len(chosen) < most:
            chosen.append(quote)
    return chosen


def said_by_user(message: Json) -> str:
    """The text of a user's message without the memory sections that stand in it."""
    return "\n".join(text for text in _texts(message) if not (HEADER.match(text) or SUMMARY.match(text)))


def _texts(message: Json) -> list[str]:
    return [block["text"] for block in blocks(message["content"]) if block["type"] == "text"]


def _sections(text: str) -> Iterator[Quote]:
    kind: Kind | None = None
    source = prose = ""
    for line in [*map(str.strip, text.splitlines()), RULE]:
        header, named, episode = HEADER.match(line), SOURCE.match(line), EPISODE.match(line)
        if (header or named or line == RULE) and kind == "knowledge" and source:
            yield from (Quote(kind, source, sentence) for sentence in sentences(prose))
            prose = ""
        if header:
            kind = "procedure" if header["name"] else KINDS[header["kind"]]
            source = header["name"] or ""
        elif named and kind == "knowledge":
            source, prose = named[1], ""
        elif kind == "knowledge":
            prose += line + "\n"
        elif kind == "episode" and episode:
            source = episode[1] or source
            yield from (Quote(kind, source, sentence) for sentence in sentences(episode[2] or episode[3]))
        elif kind == "procedure" and STEP.match(line):
            yield Quote(kind, source, line)


KINDS: dict[str, Kind] = {"Retrieved Knowledge": "knowledge", "Past Conversation Context": "episode"}
