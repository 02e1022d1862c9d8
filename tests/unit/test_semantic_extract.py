"""Every kind of file gives its text, with headings and pages, and nothing that is not its text."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from octopus.errors import DocumentRejected
from octopus.semantic import media
from octopus.semantic.extract.encoding import text_lines
from octopus.semantic.extract.limits import Limits
from octopus.semantic.extract.sandbox import SandboxedReader
from octopus.semantic.types import Block
from tests.support.files import docx, paragraph, pdf, pptx, row, shape, xlsx


@pytest.fixture(scope="module")
def reader() -> Iterator[SandboxedReader]:
    reader = SandboxedReader(Limits(pages=50, seconds=10))
    yield reader
    reader.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "document"


def read(reader: SandboxedReader, file: Path, content: bytes | str, media_type: str) -> list[Block]:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(reader.blocks(file, media_type))


def test_markdown(reader: SandboxedReader, file: Path) -> None:
    text = """Before.

# Guide #
Text under
the guide.
## Prices
| item | price |
|------|------:|
| tea  | 2     |
```python
# no heading

x = 1
```
# Next
- a
- b
"""
    assert read(reader, file, text, media.MARKDOWN) == [
        Block("Before."),
        Block("Text under\nthe guide.", "Guide"),
        Block("| tea  | 2     |", "Guide > Prices", kind="lines", header="| item | price |\n|------|------:|"),
        Block("```python\n# no heading\n\nx = 1\n```", "Guide > Prices", kind="lines"),
        Block("- a\n- b", "Next"),
    ]


def test_an_unclosed_fence_ends_with_the_file(reader: SandboxedReader, file: Path) -> None:
    assert read(reader, file, "````\na\n```\nb", media.MARKDOWN) == [Block("````\na\n```\nb", kind="lines")]


def test_plain_text(reader: SandboxedReader, file: Path) -> None:
    assert read(reader, file, "One\r\ntwo.\r\n\r\n# no heading", media.TEXT) == [
        Block("One\ntwo."),
        Block("# no heading"),
    ]


def test_html(reader: SandboxedReader, file: Path) -> None:
    text = """<!doctype html><html><head><title>T</title><style>p{}</style></head><body><nav>menu</nav>
<h1>Guide <em>one</em></h1><p>Hello <b>bold</b> &amp; caf&eacute;.</p><script>alert("x")</script><ul><li>one<li>two</ul>
<h2>Prices</h2><table><tr><th>Item<th>Price</tr><tr><td>Tea</td><td>2</td></tr></table>
<table><tr><td>Layout, not data.</td></tr></table><pre>a
  b</pre><footer>&copy;</footer></body></html>"""
    assert read(reader, file, text, media.HTML) == [
        Block("Hello bold & café.", "Guide one"),
        Block("one", "Guide one"),
        Block("two", "Guide one"),
        Block("Tea | 2", "Guide one > Prices", kind="lines", header="Item | Price"),
        Block("Layout, not data.", "Guide one > Prices"),
        Block("a\n  b", "Guide one > Prices", kind="lines"),
    ]


def test_pdf_has_pages_and_bookmarks_as_headings(reader: SandboxedReader, file: Path) -> None:
    content = pdf([["Preface.", "Terms", "Pay soon."], ["Still terms."]], bookmarks=[("Terms", 0)])
    found = read(reader, file, content, media.PDF)
    assert [(block.text.strip(), block.heading, block.page) for block in found] == [
        ("Preface.", None, 1),
        ("Pay soon.", "Terms", 1),
        ("Still terms.", "Terms", 2),
    ]


def test_word(reader: SandboxedReader, file: Path) -> None:
    styles = (
        '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift1"/></w:style>'
    )
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("Tea", "2"))
    header = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("Item", "Price"))
    nested = f"<w:tbl><w:tr>{header}</w:tr><w:sdt><w:sdtContent><w:tr>{cells}</w:tr></w:sdtContent></w:sdt></w:tbl>"
    changed = (
        "<w:p><w:ins><w:r><w:t>New</w:t></w:r></w:ins><w:del><w:r><w:delText>Old</w:delText></w:r></w:del>"
        "<w:r><w:tab/><w:t>text</w:t></w:r><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
    )
    body = (
        paragraph("Guide", "berschrift1")
        + changed
        + paragraph("Point", extra="<w:numPr/>")
        + paragraph("Prices", "Mine")
        + nested
        + f"<w:sdt><w:sdtContent>{paragraph('Controlled.')}</w:sdtContent></w:sdt>"
    )
    assert read(reader, file, docx(body, styles=styles, footnotes=paragraph("A note.")), media.DOCX) == [
        Block("New\ttext", "Guide"),
        Block("- Point", "Guide"),
        Block("Tea | 2", "Prices", kind="lines", header="Item | Price"),
        Block("Controlled.", "Prices"),
        Block("A note.", "Footnotes"),
    ]


def test_powerpoint(reader: SandboxedReader, file: Path) -> None:
    table = (
        "<p:graphicFrame><a:tbl><a:tr><a:tc><a:p><a:r><a:t>Tea</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:graphicFrame>"
    )
    content = pptx(shape("Plan", "title") + shape("Do it."), table)
    assert read(reader, file, content, media.PPTX) == [
        Block("Plan", None, 1),
        Block("Do it.", "Plan", 1),
        Block("Tea", None, 2, "lines"),
    ]


def test_excel_and_csv(reader: SandboxedReader, file: Path) -> None:
    sheet = row(1, "Item", "Price") + row(2, "Tea", 2) + row(4, "Coffee", 2.5)
    rows = Block("Tea | 2\nCoffee | 2.5", "Prices", kind="lines", header="Item | Price")
    assert read(reader, file, xlsx(sheet), media.XLSX) == [rows]
    assert read(reader, file, 'Item;Price\n"Tea; black";2\n', media.CSV) == [
        Block("Tea; black | 2", kind="lines", header="Item | Price")
    ]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "iso8859-2", "cp1251"]
)
def test_encodings(file: Path, encoding: str) -> None:
    texts = {"iso8859-2": "Zażółć gęślą jaźń, proszę bardzo. ", "cp1251": "Возврат товара возможен в течение месяца. "}
    text = texts.get(encoding, "Größe und Äußerung: café, naïve. ")
    file.write_bytes((text * 20).encode(encoding))
    assert "".join(text_lines(file)).strip() == (text * 20).strip()


def test_utf8_with_a_fault_stays_utf8(file: Path) -> None:
    file.write_bytes("Größe äöü café. ".encode() * 50 + b"\xe9\xff end")
    text = "".join(text_lines(file))
    assert text.startswith("Größe äöü café.")
    assert text.endswith("\ufffd\ufffd end")


def test_a_line_without_end_comes_in_parts(file: Path) -> None:
    file.write_text("word " * 100_000)
    lines = list(text_lines(file))
    assert max(map(len, lines)) <= 2 * 64 * 1024
    assert "".join(lines) == "word " * 100_000


@pytest.mark.parametrize(
    ("content", "declared", "reason"),
    [
        (b"", media.TEXT, "empty"),
        (b" \n\t", media.TEXT, "no text"),
        (b"%PDF-1.7\nnothing", media.PDF, "damaged"),
        (b"just text", media.PDF, "no PDF"),
        (b"just text", media.DOCX, "no Word"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 99, media.TEXT, "PNG"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", media.DOCX, "old Office"),
        (bytes(range(256)) * 9, media.MARKDOWN, "not text"),
        (pdf([[""]] * 51), media.PDF, "51 pages"),
        (pdf([[""]] * 3, image=True), media.PDF, "scan"),
        (pdf([[""]] * 3), media.PDF, "no text"),
        (docx("")[:-30], media.DOCX, "damaged"),
    ],
)
def test_what_cannot_be_read_has_a_reason(
    reader: SandboxedReader, file: Path, content: bytes, declared: str, reason: str
) -> None:
    with pytest.raises(DocumentRejected, match=reason):
        read(reader, file, content, declared)


def test_content_goes_before_the_name(reader: SandboxedReader, file: Path) -> None:
    (block,) = read(reader, file, pdf([["Hello."]]), media.TEXT)
    assert block.text.strip() == "Hello."


def test_a_reader_that_is_left_early_reads_the_next_document(reader: SandboxedReader, file: Path) -> None:
    file.write_text("word\n\n" * 200_000)
    blocks = reader.blocks(file, media.TEXT)
    assert next(blocks).text == "word"
    blocks.close()
    assert read(reader, file, "Next.", media.TEXT) == [Block("Next.")]


def test_a_reader_that_is_killed_rejects_and_reads_the_next_document(reader: SandboxedReader, file: Path) -> None:
    assert read(reader, file, "One.", media.TEXT) == [Block("One.")]
    (process,) = reader._idle
    os.kill(process.pid, 9)
    process.wait()
    with pytest.raises(DocumentRejected):
        read(reader, file, "Two.", media.TEXT)
    assert read(reader, file, "Three.", media.TEXT) == [Block("Three.")]


def test_time_is_limited(file: Path) -> None:
    reader = SandboxedReader(Limits(seconds=1))
    with pytest.raises(DocumentRejected, match="too long"):
        read(reader, file, "<p>" + "<b>x" * 3_000_000, media.HTML)
    reader.close()


@pytest.mark.parametrize(
    "forbidden",
    [
        "socket.socket()",
        "open('made', 'w')",
        "os.open('made', os.O_CREAT | os.O_WRONLY)",
        "subprocess.run(['true'])",
        "os.fork()",
        "os.kill(1, 0)",
        "os.remove('x')",
    ],
)
def test_the_process_that_reads_can_do_nothing_else(tmp_path: Path, forbidden: str) -> None:
    code = (
        "import os, socket, subprocess\n"
        "from octopus.semantic.extract.limits import Limits, lock_down\n"
        f"lock_down(Limits())\n{forbidden}\n"
    )
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "PermissionError" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_process_that_reads_has_no_credentials(reader: SandboxedReader, file: Path) -> None:
    read(reader, file, "One.", media.TEXT)
    environment = Path(f"/proc/{reader._idle[0].pid}/environ").read_bytes()
    assert b"AWS" not in environment
    assert b"OCTOPUS" not in environment
