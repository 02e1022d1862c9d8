"""Lines of text files in whatever encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from charset_normalizer import from_bytes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_COMMON = [
    "cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "shift_jis", "euc_jp",
    "gb18030", "big5", "euc_kr",
]  # fmt: skip
_PIECE = 1024 * 1024
_SAMPLE = 32 * 1024
_LONGEST_LINE = 64 * 1024


def encoding_of(path: Path) -> str:
    """The encoding: by byte order mark, by its zeros (UTF-16), UTF-8 if it is that, else by the look of its text."""
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    zeros = [head[0::2].count(0), head[1::2].count(0)]
    if max(zeros) > len(head) // 4 and min(zeros) < len(head) // 64:
        return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    fault = _first_fault(path)
    return "utf-8" if fault is None else _guess(path, fault)


def text_lines(path: Path) -> Iterator[str]:
    """The lines without their ends; a line longer than 64 thousand characters comes in parts."""
    with path.open(encoding=encoding_of(path), errors="replace") as file:
        rest = ""
        while piece := file.readline(_LONGEST_LINE):
            line = rest + piece
            rest = ""
            if not line.endswith("\n") and len(piece) == _LONGEST_LINE:
                cut = line.rfind(" ") + 1 or len(line)
                line, rest = line[:cut], line[cut:]
            yield line.rstrip("\n")
        if rest:
            yield rest


def _first_fault(path: Path) -> int | None:
    """Where the file stops being UTF-8; None if it does not."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position = 0
    with path.open("rb") as file:
        while True:
            piece = file.read(_PIECE)
            try:
                decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as exc:
                return max(0, position + exc.start)
            if not piece:
                return None
            position += len(piece)


def _guess(path: Path, fault: int) -> str:
    with path.open("rb") as file:
        file.seek(max(0, fault - _SAMPLE // 2))
        sample = file.read(_SAMPLE)
    decoded = sample.decode("utf-8", errors="replace")
    foreign = sum(character > "\x7f" for character in decoded)
    if decoded.count("\ufffd") * 4 < foreign:  # UTF-8 with a few faults
        return "utf-8"
    matches = from_bytes(sample, cp_isolation=_COMMON)
    # Alike in Western and Central European code pages: then the more common one.
    best = min(matches, key=lambda m: (round(m.chaos - m.coherence, 3), _COMMON.index(m.encoding)), default=None)
    return best.encoding if best else "cp1252"
