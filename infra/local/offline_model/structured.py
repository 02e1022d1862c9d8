"""Fill a JSON schema with what the user said in the conversation."""

from __future__ import annotations

import re
from typing import Any

from infra.local.offline_model.memory import content_words, sentences
from infra.local.offline_model.request import Json, text_of

SPOKEN = re.compile(
    r"^\W*(?P<who>user|human|customer|assistant|agent|aria)\b[^:\n]{0,60}: *(?P<what>.+)$", re.IGNORECASE
)
SPEAKERS = {"user", "human", "customer"}
MOST_ITEMS = 8
LONGEST = 400  # characters of a string whose schema sets no length


def statements(body: Json) -> list[str]:
    """What the user said, sentence by sentence: from a transcript inside the last message if it is one
    (lines `User: …`), else from the user's messages."""
    said = [text_of(message["content"]) for message in body["messages"] if message["role"] == "user"]
    lines = [match for line in said[-1].splitlines() if (match := SPOKEN.match(line.strip()))] if said else []
    if lines:
        said = [line["what"] for line in lines if line["who"].lower() in SPEAKERS]
    found = [sentence for text in said for sentence in sentences(text)]
    return list(dict.fromkeys(found)) or ["Nothing was said."]


def salient(said: list[str]) -> list[str]:
    """The statements worth keeping one by one: neither questions nor small talk, if there are such."""
    facts = [sentence for sentence in said if not sentence.endswith("?") and len(content_words(sentence)) >= 2]
    return (facts or said)[:MOST_ITEMS]


def fill(schema: Json, said: list[str]) -> Any:
    """A value that satisfies `schema`, with the text of `said` where text is asked for."""
    return _Filler(schema.get("$defs", {}), said).value(schema, name="", index=None)


class _Filler:
    def __init__(self, definitions: Json, said: list[str]) -> None:
        self._definitions = definitions
        self._said = said
        self._salient = salient(said)

    def value(self, schema: Json, *, name: str, index: int | None) -> Any:
        """`index` is the position in the list that is being filled; None outside of any."""
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "object" if "properties" in schema else "string")
        match kind if isinstance(kind, str) else next(one for one in kind if one != "null"):
            case "object":
                needed = schema.get("properties", {})
                return {key: self.value(part, name=key, index=index) for key, part in needed.items()}
            case "array":
                return self._array(schema, name)
            case "integer" | "number":
                return self._number(schema, (index or 0) + 1)
            case "boolean":
                return False
            case "null":
                return None
            case _:
                return self._string(schema, name, index)

    def _resolved(self, schema: Json) -> Json:
        if reference := schema.get("$ref"):
            target: Json = self._definitions[reference.rpartition("/")[2]]
            return self._resolved(target)
        for choice in ("anyOf", "oneOf", "allOf"):
            if options := schema.get(choice):
                return self._resolved(next(option for option in options if option.get("type") != "null"))
        return schema

    def _array(self, schema: Json, name: str) -> list[Any]:
        least, most = schema.get("minItems", 0), schema.get("maxItems", MOST_ITEMS)
        count = max(least, min(most, len(self._salient)))
        return [self.value(schema.get("items", {}), name=name, index=index) for index in range(count)]

    def _number(self, schema: Json, wanted: int) -> Any:
        if "exclusiveMinimum" in schema:
            wanted = max(wanted, schema["exclusiveMinimum"] + 1)
        if "exclusiveMaximum" in schema:
            wanted = min(wanted, schema["exclusiveMaximum"] - 1)
        return max(schema.get("minimum", wanted), min(schema.get("maximum", wanted), wanted))

    def _string(self, schema: Json, name: str, index: int | None) -> str:
        if index is not None:
            text = self._salient[index % len(self._salient)]
        elif len(self._said) == 1:
            text = self._said[0]
        else:
            text = f"{self._said[0]} … {self._said[-1]}"
        if name == "summary":
            text = f"(offline model) The user said: {text}"
        text = text[: schema.get("maxLength", LONGEST)]
        return text.ljust(schema.get("minLength", 0), ".")
