"""An answer as the Messages API sends it: whole, or as the ordered events of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from infra.local.offline_model.answer import Answer, Block, Text
from infra.local.offline_model.prompt_cache import InputUsage
from infra.local.offline_model.request import Json

TOKEN = re.compile(r"\s*\S{1,12}\s*$|\s*\S{1,12}")  # an output token: a word, or a piece of a long one


@dataclass(frozen=True)
class Message:
    """`answer` to a request, cut off after `max_tokens` output tokens."""

    answer: Answer
    model: str
    max_tokens: int
    input: InputUsage

    @cached_property
    def _pieces(self) -> list[list[str]]:
        """The output tokens of each block, as many as `max_tokens` allows."""
        left, pieces = self.max_tokens, []
        for block in self.answer.blocks:
            pieces.append(_tokens(block)[:left])
            left -= len(pieces[-1])
        return pieces

    @property
    def _stop_reason(self) -> str:
        whole = all(map(_is_whole, self.answer.blocks, self._pieces))
        return self.answer.stop_reason if whole else "max_tokens"

    @property
    def _usage(self) -> Json:
        return {
            "input_tokens": self.input.uncached,
            "cache_creation_input_tokens": self.input.written,
            "cache_read_input_tokens": self.input.read,
            "output_tokens": sum(map(len, self._pieces)),
        }

    def whole(self) -> Json:
        """The message as one JSON object. A tool's arguments that were cut off are empty, as they are no
        JSON."""
        content: list[Json] = []
        for block, pieces in zip(self.answer.blocks, self._pieces, strict=True):
            if isinstance(block, Text):
                content.append({"type": "text", "text": "".join(pieces)})
            else:
                content.append({**_empty(block), "input": block.arguments if _is_whole(block, pieces) else {}})
        return self._envelope(content, stop_reason=self._stop_reason, usage=self._usage)

    def events(self) -> Iterator[Json]:
        """The events of the stream in order, each with its `type`; one `content_block_delta` per output
        token."""
        start = self._envelope([], stop_reason=None, usage={**self._usage, "output_tokens": 1})
        yield {"type": "message_start", "message": start}
        yield {"type": "ping"}
        for index, (block, pieces) in enumerate(zip(self.answer.blocks, self._pieces, strict=True)):
            yield {"type": "content_block_start", "index": index, "content_block": _empty(block)}
            for piece in pieces:
                yield {"type": "content_block_delta", "index": index, "delta": _delta(block, piece)}
            yield {"type": "content_block_stop", "index": index}
        delta = {"stop_reason": self._stop_reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": self._usage}
        yield {"type": "message_stop"}

    def _envelope(self, content: list[Json], *, stop_reason: str | None, usage: Json) -> Json:
        return {
            "id": self.answer.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage,
        }


def _tokens(block: Block) -> list[str]:
    return TOKEN.findall(block.text if isinstance(block, Text) else json.dumps(block.arguments))


def _is_whole(block: Block, pieces: list[str]) -> bool:
    return len(pieces) == len(_tokens(block))


def _empty(block: Block) -> Json:
    if isinstance(block, Text):
        return {"type": "text", "text": ""}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}


def _delta(block: Block, piece: str) -> Json:
    if isinstance(block, Text):
        return {"type": "text_delta", "text": piece}
    return {"type": "input_json_delta", "partial_json": piece}
