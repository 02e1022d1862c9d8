"""Small files of every kind, made by hand: what a document looks like at its simplest."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_P = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
_S = (
    'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
_RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def archive(parts: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return out.getvalue()


def docx(body: str, *, prolog: str = "", styles: str = "", **parts: str) -> bytes:
    """A Word file with this XML as body; further parts by name without ending."""
    document = f"{prolog}<w:document {_W}><w:body>{body}</w:body></w:document>"
    named = {f"word/{name}.xml": f"<w:{name} {_W}>{content}</w:{name}>" for name, content in parts.items()}
    return archive({"word/document.xml": document, "word/styles.xml": f"<w:styles {_W}>{styles}</w:styles>", **named})


def paragraph(text: str, style: str = "", extra: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/>{extra}</w:pPr>' if style or extra else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx(*slides: str, prolog: str = "") -> bytes:
    """A presentation with these shape trees."""
    ids = "".join(f'<p:sldId id="{256 + i}" r:id="rId{i}"/>' for i in range(len(slides)))
    relations = "".join(
        f'<Relationship Id="rId{i}" Type="{_OFFICE}/slide" Target="slides/slide{i}.xml"/>' for i in range(len(slides))
    )
    return archive(
        {
            "ppt/presentation.xml": f"<p:presentation {_P}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": f'<Relationships xmlns="{_RELATIONSHIPS}">{relations}</Relationships>',
            **{
                f"ppt/slides/slide{i}.xml": f"{prolog}<p:sld {_P}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>"
                for i, slide in enumerate(slides)
            },
        }
    )


def shape(text: str, kind: str = "body") -> str:
    return (
        f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def xlsx(sheet: str, *, prolog: str = "") -> bytes:
    """A workbook with this XML as the data of its only sheet."""
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": (
                f'<Relationships xmlns="{_RELATIONSHIPS}">'
                f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
            ),
            "xl/workbook.xml": (
                f'<workbook {_S}><sheets><sheet name="Prices" sheetId="1" r:id="rId1"/></sheets></workbook>'
            ),
            "xl/_rels/workbook.xml.rels": (
                f'<Relationships xmlns="{_RELATIONSHIPS}">'
                f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>'
            ),
            "xl/worksheets/sheet1.xml": f"{prolog}<worksheet {_S}><sheetData>{sheet}</sheetData></worksheet>",
        }
    )


def row(number: int, *cells: str | float) -> str:
    """A row of a sheet, with texts in the cells themselves."""
    written = (
        f'<c r="{chr(65 + i)}{number}"><v>{cell}</v></c>'
        if isinstance(cell, float | int)
        else f'<c r="{chr(65 + i)}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
        for i, cell in enumerate(cells)
    )
    return f'<row r="{number}">{"".join(written)}</row>'


def pdf(pages: Sequence[Sequence[str]], *, bookmarks: Sequence[tuple[str, int]] = (), image: bool = False) -> bytes:
    """A PDF with these lines on its pages; with `image` every page has a picture of one pixel as well."""
    objects: dict[int, bytes] = {}
    first = 10
    ids = [first + 2 * i for i in range(len(pages))]
    for object_id, lines in zip(ids, pages, strict=True):
        text = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        content = f"BT /F1 12 Tf 72 720 Td {text}ET" + (" q 9 0 0 9 9 9 cm /I1 Do Q" if image else "")
        objects[object_id] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {object_id + 1} 0 R"
            "/Resources<</Font<</F1 3 0 R>>/XObject<</I1 4 0 R>>>>>>"
        ).encode()
        objects[object_id + 1] = stream(content.encode())
    outlines = ""
    if bookmarks:
        outlines = "/Outlines 5 0 R"
        places = [1_000_000 + i for i in range(len(bookmarks))]
        objects[5] = f"<</First {places[0]} 0 R/Last {places[-1]} 0 R/Count {len(places)}>>".encode()
        for i, (title, page) in enumerate(bookmarks):
            following = f"/Next {places[i + 1]} 0 R" if i + 1 < len(places) else ""
            objects[places[i]] = f"<</Title({title})/Parent 5 0 R/Dest[{ids[page]} 0 R/Fit]{following}>>".encode()
    objects[1] = f"<</Type/Catalog/Pages 2 0 R{outlines}>>".encode()
    objects[2] = f"<</Type/Pages/Kids[{' '.join(f'{i} 0 R' for i in ids)}]/Count {len(ids)}>>".encode()
    objects[3] = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
    objects[4] = stream(
        b"\xff", "/Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8"
    )
    return assembled(objects)


def stream(content: bytes, entries: str = "") -> bytes:
    return f"<<{entries}/Length {len(content)}>>stream\n".encode() + content + b"\nendstream"


def assembled(objects: dict[int, bytes], trailer: str = "") -> bytes:
    """Objects with their table of places and the trailer."""
    out = bytearray(b"%PDF-1.7\n")
    places = {}
    for number, content in sorted(objects.items()):
        places[number] = len(out)
        out += f"{number} 0 obj".encode() + content + b"endobj\n"
    start = len(out)
    out += b"xref\n0 1\n0000000000 65535 f \n"
    out += b"".join(f"{number} 1\n{place:010} 00000 n \n".encode() for number, place in places.items())
    out += f"trailer<</Root 1 0 R/Size {max(places) + 1}{trailer}>>\nstartxref\n{start}\n%%EOF".encode()
    return bytes(out)
