"""Token counts: right, in process, and never a surprise."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from octopus.cloud import tokens
from octopus.cloud.tokens import count_tokens, encoding


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("hello world", 2),
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 9),
    ],
)
def test_counts_that_openai_publishes(text: str, count: int) -> None:
    """From the OpenAI cookbook, "How to count tokens with tiktoken"."""
    assert count_tokens(text) == count


def test_text_survives_the_round_trip() -> None:
    text = "Octopus: 8 arms, 3 hearts — привет, 你好 🐙\r\n\tfin"
    assert encoding().decode(encoding().encode_ordinary(text)) == text


def test_special_tokens_are_ordinary_text() -> None:
    assert count_tokens("<|endoftext|>") == 7
    assert encoding().encode("<|endoftext|>", allowed_special="all") == [100257]


def test_a_lone_surrogate_counts() -> None:
    assert count_tokens("a\ud800b") >= 2


@pytest.mark.parametrize("run", ["a", " ", "\n", "^", "\t\n", "🐙", "'", "\x00", "xyz"])
def test_time_grows_with_length_only(run: str) -> None:
    encoding()
    started = time.process_time()
    assert count_tokens(run * (1_000_000 // len(run)) + "end") > 1_000
    assert time.process_time() - started < 5  # measured: 0.5 s; a quadratic merge takes hours


def test_long_prose_is_counted_almost_exactly() -> None:
    text = "The octopus has three hearts, and nine brains. " * 10_000
    exact = len(encoding().encode_ordinary(text))
    assert exact <= count_tokens(text) <= exact + 2 * len(text) // tokens._SPAN


def test_a_damaged_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "cl100k_base.tiktoken"
    damaged.write_bytes(tokens._RANKS.read_bytes()[:-1])
    monkeypatch.setattr(tokens, "_RANKS", damaged)
    with pytest.raises(ValueError, match="damaged"):
        encoding.__wrapped__()


def test_no_network_and_no_file_written(tmp_path: Path) -> None:
    """In a fresh process, whose temporary directory stays empty and whose sockets and writes would raise."""
    program = """
import sys

def forbid(event, args):
    if event.startswith("socket.") or event in ("os.mkdir", "os.rename", "os.remove"):
        raise PermissionError(event)
    if event == "open" and args[1] is not None and set(args[1]) & set("wax+"):
        raise PermissionError(f"writes {args[0]}")

import octopus.cloud.tokens as tokens
sys.addaudithook(forbid)
print(tokens.count_tokens("hello world"))
"""
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TMPDIR": str(tmp_path),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")
    assert list(tmp_path.iterdir()) == []
