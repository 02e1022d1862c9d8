"""What the provider's prompt cache would have read and written.

Source of the rules: Anthropic's documentation of prompt caching. The cache holds prefixes of the request in
the order tools, system, messages. A prefix is written where a block carries `cache_control`, if it is long
enough, and read where a request has the same bytes up to that point, at most 20 blocks before one of its own
breakpoints. Entries here end by number, not after five minutes.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from infra.local.offline_model.request import Json, blocks

SHORTEST = 1024  # tokens of the shortest prefix that is cached; 1024 to 4096 by model
LOOK_BACK = 20  # blocks
BYTES_PER_TOKEN = 4
ENTRIES = 1000


def tokens(size: int) -> int:
    """About how many tokens `size` bytes of UTF-8 have: 4 bytes each, a rule of thumb for English."""
    return ceil(size / BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class InputUsage:
    """Input tokens of one request. Their sum is the whole input."""

    uncached: int
    written: int
    read: int


class PromptCache:
    """The prefixes that some request has written, least recently used first."""

    def __init__(self) -> None:
        self._prefixes: OrderedDict[str, None] = OrderedDict()

    def account(self, body: Json) -> InputUsage:
        """Count the input of `body`, and write the prefixes that it marks."""
        digest, length = hashlib.sha256(body["model"].encode()), 0
        read = written = 0
        recent: list[tuple[str, int]] = []  # prefixes a breakpoint may look back to: digest, bytes
        for part, marked in _parts(body):
            digest.update(part)
            length += len(part)
            recent = [*recent, (digest.hexdigest(), length)][-LOOK_BACK:]
            if marked and tokens(length) >= SHORTEST:
                hits = [size for name, size in recent if name in self._prefixes]
                read = max([read, *hits])
                written = length
                self._write(digest.hexdigest())
        return InputUsage(
            uncached=tokens(length) - tokens(max(read, written)),
            written=max(tokens(written) - tokens(read), 0),
            read=tokens(read),
        )

    def _write(self, name: str) -> None:
        self._prefixes[name] = None
        self._prefixes.move_to_end(name)
        if len(self._prefixes) > ENTRIES:
            self._prefixes.popitem(last=False)


def _parts(body: Json) -> Iterator[tuple[bytes, bool]]:
    """The request's parts in the provider's order, each as bytes and whether a breakpoint follows it."""
    parts = [("tool", tool) for tool in body.get("tools", [])]
    parts += [("system", block) for block in blocks(body.get("system") or [])]
    for message in body["messages"]:
        parts += [(message["role"], block) for block in blocks(message["content"])]
    for index, (kind, part) in enumerate(parts):
        bare = {name: value for name, value in part.items() if name != "cache_control"}
        marked = "cache_control" in part or ("cache_control" in body and index == len(parts) - 1)
        text = bare["text"] if bare.get("type") == "text" else json.dumps(bare, sort_keys=True)
        yield f"{kind}\n{text}".encode(), marked
