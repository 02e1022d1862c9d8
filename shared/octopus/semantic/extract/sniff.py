"""What a file is by its content, whatever its name says."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile, ZipFile

from octopus.errors import DocumentRejected
from octopus.semantic.extract.limits import Limits
from octopus.semantic.media import CSV, DOCX, HTML, MARKDOWN, PDF, PPTX, TEXT, XLSX

_HEAD = 4096
_FOREIGN = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"{\\rtf", "an RTF file; save it as DOCX"),
    (
        b"\xd0\xcf\x11\xe0",
        "an old Office file or one with a password; save it in the new format, without one",
    ),
)
_MAIN_PARTS = {"word/document.xml": DOCX, "ppt/presentation.xml": PPTX, "xl/workbook.xml": XLSX}
_NAMES = {PDF: "PDF", DOCX: "Word", PPTX: "PowerPoint", XLSX: "Excel"}
_TEXTS = {HTML, CSV, MARKDOWN, TEXT}


def actual_type(path: Path, declared: str, limits: Limits) -> str:
    """The media type to read the file as. Raises `DocumentRejected` for a file that is none of ours."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head:
        raise DocumentRejected("The file is empty.")
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith(b"PK"):
        return _office_type(path, limits)
    for magic, name in _FOREIGN:
        if head.startswith(magic):
            raise DocumentRejected(f"The file is {name}.")
    if declared not in _TEXTS:
        raise DocumentRejected(f"The file is damaged or not what its name says: it is no {_NAMES[declared]} file.")
    if _looks_binary(head):
        raise DocumentRejected("The file is not text, whatever its name says.")
    return declared


def _office_type(path: Path, limits: Limits) -> str:
    """The kind of Office file in a ZIP archive, if unpacking it is safe."""
    try:
        with ZipFile(path) as archive:
            parts = archive.infolist()
    except (BadZipFile, NotImplementedError, OSError, ValueError) as exc:
        raise DocumentRejected("The file is damaged: its archive cannot be opened.") from exc
    if any(part.flag_bits & 0x1 for part in parts):
        raise DocumentRejected("The file is encrypted; save it without a password.")
    unpacked = sum(part.file_size for part in parts)
    packed = sum(part.compress_size for part in parts)
    if unpacked > limits.unpacked_bytes or unpacked > limits.pack_ratio * max(packed, 10_000):
        raise DocumentRejected(f"The file unpacks to {unpacked} bytes, more than is allowed; it may be a ZIP bomb.")
    names = [part.filename for part in parts]
    if len(set(names)) != len(names):
        raise DocumentRejected("The file is damaged: its archive holds two parts of one name.")
    for part, media_type in _MAIN_PARTS.items():
        if part in names:
            return media_type
    raise DocumentRejected("The file is a ZIP archive; upload the files that it holds, one by one.")


def _looks_binary(head: bytes) -> bool:
    """Control characters beyond one in fifty, but for the zeros that UTF-16 and UTF-32 have in every other byte."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        return False
    zeros = [head[0::2].count(0), head[1::2].count(0)]
    if max(zeros) > len(head) // 4 and min(zeros) < len(head) // 64:
        return False
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return controls > len(head) // 50
