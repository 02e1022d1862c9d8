"""Fill a JSON schema with what the user said in the conversation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from infra.local.offline_model.memory import content_words, said_by_user, sentences
from infra.local.offline_model.request import Json

# A line of a transcript: `User: …`, `user [3, Friday 2026-11-20]: …`. Its text goes on in indented lines.
SPOKEN = re.compile(
    r"^(?P<who>user|human|customer|assistant|agent|tool)(?: \[(?P<number>\d+)[^\]]*\])?: *(?P<text>.*)$", re.I
)
SPEAKERS = {"user", "human", "customer"}
MOST_ITEMS = 8
LONGEST = 400  # characters of a string whose schema sets no length


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the user's, and the number of its message in a transcript that numbers them."""

    text: str
    number: int | None = None


def statements(body: Json) -> list[Statement]:
    """What the user said, sentence by sentence: in the transcript inside the last message if it is one, else
    in the user's messages."""
    said = [said_by_user(message) for message in body["messages"] if message["role"] == "user"]
    found = [
        Statement(sentence, number)
        for number, text in _transcript(said[-1]) or ((None, text) for text in said)
        for sentence in sentences(text)
    ]
    return list(dict.fromkeys(found)) or [Statement("Nothing was said.")]


def _transcript(text: str) -> list[tuple[int | None, str]]:
    """Number and text of what the user said, and of what precedes the transcript (an earlier summary, say);
    empty if `text` is none."""
    told: list[tuple[str, int | None, str]] = []
    before: list[str] = []
    for line in text.splitlines():
        if spoken := SPOKEN.match(line):
            number = int(spoken["number"]) if spoken["number"] else None
            told.append((spoken["who"].lower(), number, spoken["text"]))
        elif not told:
            before.append(line)
        elif line.startswith("  "):
            who, number, so_far = told[-1]
            told[-1] = (who, number, f"{so_far}\n{line.strip()}")
    earlier = [(None, line) for line in before if len(content_words(line)) > 2]
    by_user = [(number, text) for who, number, text in told if who in SPEAKERS]
    return [*earlier, *by_user] if told else []


def salient(said: list[Statement]) -> list[Statement]:
    """The statements worth keeping one by one: neither questions nor small talk, if there are such."""
    facts = [one for one in said if not one.text.endswith("?") and len(content_words(one.text)) >= 2]
    return (facts or said)[:MOST_ITEMS]


def fill(schema: Json, said: list[Statement]) -> Any:
    """A value that satisfies `schema`, with the text of `said` where text is asked for."""
    return _Filler(schema.get("$defs", {}), said).value(schema, "", None)


class _Filler:
    def __init__(self, definitions: Json, said: list[Statement]) -> None:
        self._definitions = definitions
        self._said = said
        self._salient = salient(said)

    def value(self, schema: Json, name: str, item: int | None) -> Any:
        """A value for the property `name`; `item` is the place in the outermost list around it, from 0."""
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "object" if "properties" in schema else "string")
        match kind if isinstance(kind, str) else next(one for one in kind if one != "null"):
            case "object":
                return {key: self.value(part, key, item) for key, part in schema.get("properties", {}).items()}
            case "array":
                return self._array(schema, name, item)
            case "integer" | "number":
                return self._number(schema, item)
            case "boolean":
                return False
            case "null":
                return None
            case _:
                return self._string(schema, name, item)

    def _resolved(self, schema: Json) -> Json:
        if reference := schema.get("$ref"):
            return self._resolved(self._definitions[reference.rpartition("/")[2]])
        for choice in ("anyOf", "oneOf", "allOf"):
            if options := schema.get(choice):
                return self._resolved(next(option for option in options if option.get("type") != "null"))
        return schema

    def _array(self, schema: Json, name: str, item: int | None) -> list[Any]:
        """One entry per salient statement; in an entry of another list just its own."""
        wanted = range(len(self._salient)) if item is None else range(item, item + 1)
        count = max(schema.get("minItems", 0), min(schema.get("maxItems", MOST_ITEMS), len(wanted)))
        return [self.value(schema.get("items", {}), name, wanted.start + place) for place in range(count)]

    def _number(self, schema: Json, item: int | None) -> Any:
        """The number of the statement's message, or its place in the list from 1, as near as the bounds
        allow."""
        place = item or 0
        wanted = self._salient[place % len(self._salient)].number or place + 1
        if "exclusiveMinimum" in schema:
            wanted = max(wanted, schema["exclusiveMinimum"] + 1)
        if "exclusiveMaximum" in schema:
            wanted = min(wanted, schema["exclusiveMaximum"] - 1)
        return max(schema.get("minimum", wanted), min(schema.get("maximum", wanted), wanted))

    def _string(self, schema: Json, name: str, item: int | None) -> str:
        if item is not None:
            text = self._salient[item % len(self._salient)].text
        else:
            text = " ".join(one.text for one in self._salient)
        if name == "summary":
            text = f"(offline model) The user said: {text}"
        return text[: schema.get("maxLength", LONGEST)].ljust(schema.get("minLength", 0), ".")
