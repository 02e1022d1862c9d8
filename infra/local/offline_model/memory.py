"""Find, in what the model was given, the sentences that share most words with the question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from infra.local.offline_model.request import Json, blocks, text_of

Kind = Literal["procedure", "knowledge", "episode", "history"]

HEADER = re.compile(r"^\[(?:Procedure: (?P<name>[^\]]+)|(?P<kind>Retrieved Knowledge|Past Conversation Context))\]")
SOURCE = re.compile(r"^Source: *(.+)$")
MARKUP = re.compile(r"^(?:-{3,}|</?[\w-]+[^>]*>|\[/?[A-Z][^\]]*\])$")  # separators, and fences around retrieved text
STEP = re.compile(r"^Step \d+:|^→")
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
    texts = [block["text"] for block in blocks(messages[-1]["content"]) if block["type"] == "text"]
    return texts[-1] if texts else ""


def quotes(body: Json) -> Iterator[Quote]:
    """Everything quotable in a request, in its order: memory sections wherever they stand, then what the user
    said earlier in this conversation."""
    messages = body["messages"]
    last = question(messages)
    texts = [block["text"] for block in blocks(body.get("system") or []) if block["type"] == "text"]
    for message in messages:
        texts += [text for block in blocks(message["content"]) if (text := block.get("text")) and text is not last]
    for text in texts:
        yield from _sections(text)
    for message in messages[:-1]:
        said = text_of(message["content"])
        if message["role"] == "user" and not any(map(HEADER.match, said.splitlines())):
            yield from (Quote("history", "", sentence) for sentence in sentences(said))


def closest(candidates: Iterable[Quote], asked: str, *, most: int) -> list[Quote]:
    """At most `most` of the candidates, those that share most content words with `asked` first; none that
    share none."""
    wanted = content_words(asked)
    scored = [
        (len(wanted & content_words(f"{quote.source} {quote.text}")), quote) for quote in dict.fromkeys(candidates)
    ]
    ranked = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return [quote for _, quote in ranked[:most]]


def _sections(text: str) -> Iterator[Quote]:
    kind: Kind | None = None
    source, prose = "", ""
    for line in [*text.splitlines(), "---"]:
        line = line.strip()
        header, named = HEADER.match(line), SOURCE.match(line)
        if header or named or MARKUP.match(line):
            if kind == "knowledge":
                yield from (Quote(kind, source, sentence) for sentence in sentences(prose))
            prose = ""
        if header:
            kind = "procedure" if header["name"] else KINDS[header["kind"]]
            source = header["name"] or ""
        elif named and kind == "knowledge":
            source = named[1]
        elif kind == "knowledge":
            prose += line + "\n"
        elif line and kind == "episode" and not MARKUP.match(line):
            yield Quote(kind, source, line.removeprefix("- "))
        elif kind == "procedure" and STEP.match(line):
            yield Quote(kind, source, line)


KINDS: dict[str, Kind] = {"Retrieved Knowledge": "knowledge", "Past Conversation Context": "episode"}
