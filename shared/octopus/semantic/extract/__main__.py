"""The process that reads documents. It is started once, and forks for each document.

A request is a line of JSON on standard input; the answer are lines of JSON on standard output: lists of blocks, then
``{"end": true}``, ``{"rejected": reason}`` or ``{"broken": what}``. The fork that reads a document never sees another.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from octopus.errors import DocumentRejected
from octopus.semantic.extract.formats import blocks
from octopus.semantic.extract.limits import Limits, lock_down
from octopus.semantic.types import Block

_MESSAGE = 64 * 1024  # characters of text in one line of the answer, about


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                _answer(json.loads(line), sys.stdout)
            except BaseException as exc:  # a parser that was not ready for this file; the place, but no content
                where = traceback.extract_tb(exc.__traceback__)[-1]
                _say({"broken": f"{type(exc).__name__} in {Path(where.filename).name}:{where.lineno}"}, sys.stdout)
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGXCPU:
            _say({"rejected": "The document takes too long to read; split or simplify it."}, sys.stdout)
        elif code != 0:
            _say({"broken": f"exit status {code}"}, sys.stdout)
        sys.stdout.flush()


def _answer(request: dict[str, Any], out: TextIO) -> None:
    limits = Limits(**request["limits"])
    lock_down(limits)
    try:
        for message in _messages(blocks(Path(request["path"]), request["media_type"], limits)):
            _say(message, out)
    except DocumentRejected as rejected:
        _say({"rejected": rejected.detail}, out)
    else:
        _say({"end": True}, out)


def _messages(found: Iterable[Block]) -> Iterable[list[list[Any]]]:
    message: list[list[Any]] = []
    size = 0
    for block in found:
        message.append([block.text, block.heading, block.page, block.kind, block.header])
        size += len(block.text)
        if size > _MESSAGE:
            yield message
            message, size = [], 0
    if message:
        yield message


def _say(message: object, out: TextIO) -> None:
    out.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    main()
