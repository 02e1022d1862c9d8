"""Which chunks and episodes go into the prompt: whole, by rank, within the cap of their section and the budget."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from octopus.episodic.types import RecalledEpisode, Recollection
from octopus.memory_config import MemoryConfig
from octopus.recall import Score
from octopus.semantic.types import Knowledge, RecalledChunk
from octopus.working.sections import EPISODES_HEADER, KNOWLEDGE_HEADER, chunk_text, episode_text
from octopus.working.types import Item, LeftOut, Section, SectionName, Tokens


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate with its text. `place` orders the entries of a section, where that is not by rank."""

    item: Item
    text: str
    place: Any


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidates of one section, best first; an item without `left_out` is included."""

    name: SectionName
    header: str
    header_tokens: int
    entries: tuple[Entry, ...]

    @property
    def included(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.item.left_out is None]

    @property
    def tokens(self) -> int:
        included = self.included
        return self.header_tokens + sum(entry.item.tokens for entry in included) if included else 0

    @property
    def text(self) -> str | None:
        """The section; None when nothing is included, so that no header stands alone."""
        included = sorted(self.included, key=lambda entry: entry.place)
        return self.header + "".join(entry.text for entry in included) if included else None

    def section(self) -> Section:
        return Section(self.name, self.tokens, [entry.item for entry in self.entries])

    def without(self, dropped: Entry, why: LeftOut) -> Selection:
        left_out = replace(dropped, item=replace(dropped.item, left_out=why))
        return replace(self, entries=tuple(left_out if entry is dropped else entry for entry in self.entries))


def select_knowledge(knowledge: Knowledge, config: MemoryConfig, tokens: Tokens) -> Selection:
    """Chunks, best first, within ``semantic_context_max_tokens``."""

    def entry(chunk: RecalledChunk, left_out: LeftOut | None) -> Entry:
        # The stored count spares tokenizing the content again; only what the format adds is counted now.
        frame = tokens.raw(f"Source: {chunk.source}\n\n---\n")
        quoted = chunk_text(chunk)
        marks = quoted.count("\n> ") * 2
        raw = chunk.token_count + frame + marks
        return _entry(
            chunk_id(chunk),
            quoted,
            tokens.scaled(raw),
            chunk.score,
            config.semantic_min_score,
            left_out,
            hashed=chunk.content,
            place=chunk.score.rank,
        )

    entries = [entry(chunk, None) for chunk in knowledge.chunks]
    entries += [entry(chunk, "below_min_score") for chunk in knowledge.near_misses]
    return _within_cap("knowledge", KNOWLEDGE_HEADER, entries, config.semantic_context_max_tokens, tokens)


def select_episodes(recollection: Recollection, config: MemoryConfig, tokens: Tokens) -> Selection:
    """Episodes, chosen by rank and placed oldest first, within ``episodic_max_tokens``."""

    def entry(episode: RecalledEpisode, left_out: LeftOut | None) -> Entry:
        text = episode_text(episode)
        return _entry(
            str(episode.episode_id),
            text,
            tokens.count(text),
            episode.score,
            config.episodic_min_score,
            left_out,
            hashed=episode.summary,
            place=(episode.started_at, episode.episode_id),
        )

    entries = [entry(episode, None) for episode in recollection.episodes]
    entries += [entry(episode, "below_min_score") for episode in recollection.near_misses]
    return _within_cap("episodes", EPISODES_HEADER, entries, config.episodic_max_tokens, tokens)


def drop_to_fit(selections: Sequence[Selection], tokens: int) -> list[Selection]:
    """Leave out the lowest-ranked entries, whichever section they are in, until all fit into `tokens`."""
    fitting = list(selections)
    while sum(selection.tokens for selection in fitting) > tokens:
        at = max(
            (index for index, selection in enumerate(fitting) if selection.included),
            key=lambda index: (fitting[index].included[-1].item.score.rank, index),
        )
        fitting[at] = fitting[at].without(fitting[at].included[-1], "budget")
    return fitting


def chunk_id(chunk: RecalledChunk) -> str:
    """Names a chunk in a trace."""
    return f"{chunk.document_id}:{chunk.ordinal}"


def content_hash(text: str) -> str:
    """Tells later whether stored text is still what the model saw; 64 bits, not the text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def version_hash(version: int) -> str:
    """The same for what is versioned anyway."""
    return f"v{version}"


def _within_cap(name: SectionName, header: str, entries: list[Entry], cap: int, tokens: Tokens) -> Selection:
    selection = Selection(name, header, tokens.count(header), tuple(entries))
    used = selection.header_tokens
    for entry in selection.included:
        if used + entry.item.tokens > cap:
            selection = selection.without(entry, "section_cap")
        else:
            used += entry.item.tokens
    return selection


def _entry(
    item_id: str,
    text: str,
    tokens: int,
    score: Score,
    threshold: float,
    left_out: LeftOut | None,
    *,
    hashed: str,
    place: Any,
) -> Entry:
    return Entry(Item(item_id, tokens, score, threshold, content_hash(hashed), left_out), text, place)
