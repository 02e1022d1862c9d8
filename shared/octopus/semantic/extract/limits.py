"""How much of a document is read, and what the process that reads it may do."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from octopus.errors import DocumentRejected
from octopus.semantic.types import Block

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_FORBIDDEN = (
    "socket.", "subprocess.", "os.exec", "os.fork", "os.forkpty", "os.kill", "os.posix_spawn", "os.spawn", "os.system",
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "shutil.", "ctypes.dlopen",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """For one document. `seconds` is CPU time, and the longest that the reader may keep silent."""

    pages: int = 2_000
    characters: int = 50_000_000
    unpacked_bytes: int = 500_000_000
    pack_ratio: int = 200
    seconds: int = 120
    memory_bytes: int = 1024**3


def lock_down(limits: Limits) -> None:
    """Let this process, for good, only compute and read files: no network, no program, no writing.

    The audit hook binds Python code. The native parsers have no network of their own, or have it switched off.
    """
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_FORBIDDEN) or (event == "open" and arguments[2] & _WRITING):
            raise PermissionError(f"{event} is forbidden while a document is read")

    sys.addaudithook(refuse)


def within(limits: Limits, blocks: Iterable[Block]) -> Iterator[Block]:
    """The same blocks. Raises `DocumentRejected` when they hold more text than allowed, or none at all."""
    characters = 0
    for block in blocks:
        characters += len(block.text)
        if characters > limits.characters:
            raise DocumentRejected(f"The document has more than {limits.characters} characters of text. Split it.")
        yield block
    if not characters:
        raise DocumentRejected("The document has no text.")
