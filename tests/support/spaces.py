"""Two embedding models on one database, and all memories as each of them sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from octopus.cloud import embedding_space
from octopus.cloud.database import Database
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.embeddings.change import EmbeddingChange
from octopus.embeddings.store import PostgresChangeStore
from octopus.episodic.reembed import EpisodeVectors
from octopus.episodic.reembed_store import PostgresTraceVectors
from octopus.identity import Principal, Role
from octopus.memory_config import MemoryConfig
from octopus.procedural.library import ProcedureLibrary
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.reembed import ProcedureVectors
from octopus.procedural.reembed_store import PostgresProcedureVectors
from octopus.procedural.store import PostgresProcedureStore
from octopus.recall import Query, Scope, Score
from octopus.relevance import Calibration, Vector
from octopus.semantic.recall import KnowledgeRecall
from octopus.semantic.reembed import DocumentVectors
from octopus.semantic.reembed_store import PostgresChunkVectors
from octopus.semantic.search_store import PostgresKnowledgeSearch
from tests.support.embedder import WordEmbedder
from tests.support.episodic import Memory
from tests.support.library import Library

ADMIN = Principal("acme", "root", frozenset({Role.ADMIN}))
GENEROUS = MemoryConfig(episodic_min_score=0.1, semantic_min_score=0.1, procedural_min_score=0.1, semantic_top_k=8)


class Narrow(WordEmbedder):
    model = "narrow words"
    dimensions = 384


class Wide(WordEmbedder):
    """All its vectors have something in common, so that its cosines and what they are worth tell it from `Narrow`."""

    model = "wide words"
    dimensions = 1024
    calibration = Calibration(((-1.0, 0.0), (0.36, 0.01), (1.0, 1.0)))

    def _vector(self, text: str) -> Vector:
        return [0.8 * x for x in super()._vector(text)[:-1]] + [0.6]


class Twin(Wide):
    """As many dimensions as `Narrow`: mixed up, the two would not even be noticed."""

    model = "twin words"
    dimensions = 384


class Half(Wide):
    model = "half words"
    dimensions = 512


class Quarter(Wide):
    model = "quarter words"
    dimensions = 256


class Killed(BaseException):
    """The process is gone."""


class Mortal(Wide):
    """Keeps what it was paid for; dies when it is asked for the last of its `lives`, before or `after` the work."""

    lives = 1_000_000
    after = False
    lost = 0  # texts that it had embedded, and nobody got

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.lives -= 1
        if self.lives <= 0 and not self.after:
            raise Killed
        vectors = await super().embed(texts)
        if self.lives <= 0:
            self.lost += len(texts)
            raise Killed
        return vectors


@dataclass(frozen=True)
class Answer:
    """What the three memories say to a message: items with their cosines and relevances."""

    chunks: tuple[tuple[str, float, float], ...]
    episodes: tuple[tuple[UUID, float, float], ...]
    procedure: tuple[str, float, float] | None


class Room:
    """All memories of one embedding model, as the wiring makes them."""

    def __init__(self, database: Database, embedder: WordEmbedder, scope: Scope) -> None:
        self.space = EmbeddingSpace(database, embedder)
        self.embedder = embedder
        self.scope = scope
        self.library = Library(database, self.space, embedder)
        self.episodes = Memory(database, self.space, embedder, scope)
        store = PostgresProcedureStore(database, self.space)
        self.procedures = ProcedureLibrary(store, embedder)
        self._guidance = ProcedureRecall(store, embedder)
        self.scan = KnowledgeRecall(PostgresKnowledgeSearch(database, self.space), embedder.calibration)
        self.index = KnowledgeRecall(PostgresKnowledgeSearch(database, self.space, exact_to=0), embedder.calibration)

    def query(self, text: str) -> Query:
        async def vector() -> Vector:
            return (await WordEmbedder.embed(self.embedder, [text]))[0]

        return Query(text, vector())

    async def ask(self, text: str) -> Answer:
        query = self.query(text)
        chunks = (await self.scan.recall(self.scope, query, GENEROUS)).chunks
        episodes = (await self.episodes.recall_room.recall(self.scope, query, GENEROUS)).episodes
        match = (await self._guidance.recall(self.scope, query, GENEROUS)).match
        return Answer(
            tuple((chunk.content, *_worth(chunk.score)) for chunk in chunks),
            tuple((episode.episode_id, *_worth(episode.score)) for episode in episodes),
            match and (match.procedure.name, *_worth(match.score)),
        )


def _worth(score: Score) -> tuple[float, float]:
    return round(score.cosine or 0.0, 3), round(score.relevance or 0.0, 3)


class Rooms:
    """Chooses the room of the current model before each question, as `Services.follow_space` does."""

    def __init__(self, database: Database, scope: Scope, *embedders: WordEmbedder) -> None:
        self._rooms = {embedder.model: Room(database, embedder, scope) for embedder in embedders}
        self._space = next(iter(self._rooms.values())).space
        self.of = self._rooms.__getitem__

    async def ask(self, text: str) -> tuple[str, Answer]:
        """The model that was current, and the answer."""
        model = await self._space.current_model()
        return model, await self._rooms[model].ask(text)


def change_of(
    database: Database, sweep: Database, *embedders: WordEmbedder, lease_s: float = 300.0, grace_s: float = 900.0
) -> EmbeddingChange:
    """The job, with nothing of it left out."""
    memories = (
        DocumentVectors(PostgresChunkVectors(database)),
        EpisodeVectors(PostgresTraceVectors(database)),
        ProcedureVectors(PostgresProcedureVectors(database)),
    )
    models = {embedder.model: embedder for embedder in embedders}
    store = PostgresChangeStore(sweep)
    return EmbeddingChange(store, memories, models.__getitem__, lease_s=lease_s, grace_s=grace_s)


TRUSTED = f"{embedding_space.__name__}.TRUSTED_S"
