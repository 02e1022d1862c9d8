"""Memory 2."""

from __future__ import annotations

from functools import cached_property

from octopus.cloud.tokens import count_tokens
from octopus.cloud.wiring.outside import Outside
from octopus.episodic.closing import EpisodeWriter
from octopus.episodic.library import Episodes
from octopus.episodic.privacy import Privacy
from octopus.episodic.privacy_store import PostgresPrivacyStore
from octopus.episodic.recall import EpisodicRecall
from octopus.episodic.retention import Retention
from octopus.episodic.retention_store import PostgresRetentionFinder, PostgresRetentionStore
from octopus.episodic.store import PostgresEpisodeStore
from octopus.episodic.summarizer import Summarizer


class Episodic(Outside):
    """Episodic memory: recall, closing, retention, erasure."""

    @cached_property
    def episode_store(self) -> PostgresEpisodeStore:
        return PostgresEpisodeStore(self.database, self.space)

    @cached_property
    def episodic(self) -> EpisodicRecall:
        return EpisodicRecall(self.episode_store, self.embedder)

    @cached_property
    def episodes(self) -> Episodes:
        return Episodes(self.episode_store, self.episodic, self.query_embedder)

    @cached_property
    def episode_writer(self) -> EpisodeWriter:
        summarizer = Summarizer(self.model, count_tokens)
        return EpisodeWriter(self.episode_store, summarizer, self.embedder, count_tokens)

    @cached_property
    def retention(self) -> Retention:
        return Retention(PostgresRetentionFinder(self.sweep_database), PostgresRetentionStore(self.database))

    @cached_property
    def privacy(self) -> Privacy:
        return Privacy(PostgresPrivacyStore(self.database))
