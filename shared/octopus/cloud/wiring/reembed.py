"""Another embedding model."""

from __future__ import annotations

from functools import cached_property

from octopus.cloud.wiring.outside import Outside
from octopus.embeddings.change import EmbeddingChange
from octopus.embeddings.store import PostgresChangeStore
from octopus.episodic.reembed import EpisodeVectors
from octopus.episodic.reembed_store import PostgresTraceVectors
from octopus.procedural.reembed import ProcedureVectors
from octopus.procedural.reembed_store import PostgresProcedureVectors
from octopus.semantic.reembed import DocumentVectors
from octopus.semantic.reembed_store import PostgresChunkVectors


class Reembed(Outside):
    """A change of the embedding model in all memories."""

    @cached_property
    def embedding_change(self) -> EmbeddingChange:
        memories = (
            DocumentVectors(PostgresChunkVectors(self.database)),
            EpisodeVectors(PostgresTraceVectors(self.database)),
            ProcedureVectors(PostgresProcedureVectors(self.database)),
        )
        return EmbeddingChange(PostgresChangeStore(self.sweep_database), memories, self.embedder_of)
