"""LoCoMo and Cranfield as collections: items, queries, and which items are relevant to which query.

LoCoMo (Maharana et al. 2024, `snap-research/locomo`, CC BY-NC 4.0): dialogue turns in sessions, and questions with
the turns that hold their evidence. Cranfield: abstracts and queries, a public test collection without a licence.
Neither is in this repository; the directory that holds their files is an argument of every benchmark.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")  # also inside "D8:6; D9:17", "D:11:26" and "D30:05"
_DATE = "%I:%M %p on %d %B, %Y"  # "1:56 pm on 8 May, 2023"


@dataclass(frozen=True, slots=True)
class Item:
    """One turn of a dialogue, or one abstract (a session of its own, said by nobody)."""

    key: str
    session: int
    speaker: str | None
    text: str
    date: datetime | None = None

    @property
    def said(self) -> str:
        """The text with its speaker, as in a transcript."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """`relevant` holds positions in the collection's items."""

    text: str
    relevant: frozenset[int]
    category: int | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """What one user (or one agent) remembers, in order, and what is asked about it."""

    name: str
    items: list[Item]
    questions: list[Question]

    def sessions(self) -> list[int]:
        """The session of each item."""
        return [item.session for item in self.items]


def locomo(directory: Path) -> list[Collection]:
    """One collection per conversation, from every ``locomo*.json``. Questions without usable evidence are left out."""
    return [
        _conversation(sample)
        for path in sorted(directory.glob("locomo*.json"))
        for sample in json.loads(path.read_text("utf-8"))
    ]


def _conversation(sample: dict[str, Any]) -> Collection:
    dialogue = sample["conversation"]
    numbers = sorted(int(m[1]) for key in dialogue if (m := re.fullmatch(r"session_(\d+)", key)))
    items = [
        Item(said["dia_id"], n, said["speaker"], said["text"], _date(dialogue.get(f"session_{n}_date_time")))
        for n in numbers
        for said in dialogue[f"session_{n}"]
    ]
    position = {item.key: i for i, item in enumerate(items)}
    questions = []
    for asked in sample["qa"]:
        named = [f"D{int(s)}:{int(t)}" for s, t in _EVIDENCE.findall(" ".join(asked.get("evidence") or []))]
        relevant = frozenset(position[key] for key in named if key in position)
        if relevant:
            questions.append(Question(str(asked["question"]), relevant, asked["category"]))
    return Collection(sample["sample_id"], items, questions)


def _date(written: str | None) -> datetime | None:
    return datetime.strptime(written, _DATE).replace(tzinfo=UTC) if written else None


def cranfield(directory: Path) -> list[Collection]:
    """One collection: every abstract, and the queries of every ``cranfield*queries.jsonl``."""
    documents = _lines(directory / "cranfield_docs.jsonl")
    position = {document["id"]: i for i, document in enumerate(documents)}
    asked = [q for path in sorted(directory.glob("cranfield*queries.jsonl")) for q in _lines(path)]
    abstracts = Collection(
        "cranfield",
        [Item(str(d["id"]), i, None, d["text"]) for i, d in enumerate(documents)],
        [Question(q["text"], frozenset(position[i] for i in q["relevant"] if i in position)) for q in asked],
    )
    return [abstracts]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
