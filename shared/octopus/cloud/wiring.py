"""What is connected to what: the one place where ports meet adapters.

Nothing connects at import; each part is made when first asked for and lives as long as the execution environment.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import SecretStr

from octopus.agents.registry import AgentRegistry
from octopus.agents.store import PostgresAgentStore
from octopus.cloud.anthropic_model import AnthropicModel
from octopus.cloud.database import Database
from octopus.cloud.database_address import Address, IamAddress, fixed_address, secret_address
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.events import EventBridgeBus
from octopus.cloud.identity import JwtVerifier
from octopus.cloud.index_queue import SqsIndexQueue
from octopus.cloud.migrations import ROLLBACK_S, migrate
from octopus.cloud.objects import S3Objects
from octopus.cloud.observer import PowertoolsObserver
from octopus.cloud.secrets import secret_string
from octopus.cloud.tokens import count_tokens
from octopus.cloud.tool_targets import ToolEndpoints
from octopus.conversations.session_store import PostgresSessionStore
from octopus.conversations.sessions import Sessions
from octopus.conversations.store import PostgresConversationLog
from octopus.conversations.sweep import SessionSweep
from octopus.conversations.sweep_store import PostgresSessionFinder
from octopus.embedding import Embedder
from octopus.episodic.closing import EpisodeWriter
from octopus.episodic.library import Episodes
from octopus.episodic.privacy import Privacy
from octopus.episodic.privacy_store import PostgresPrivacyStore
from octopus.episodic.recall import EpisodicRecall
from octopus.episodic.retention import Retention
from octopus.episodic.retention_store import PostgresRetentionFinder, PostgresRetentionStore
from octopus.episodic.store import PostgresEpisodeStore
from octopus.episodic.summarizer import Summarizer
from octopus.errors import OctopusError
from octopus.identity import TokenVerifier
from octopus.procedural.capture import ProcedureCapture
from octopus.procedural.capture_store import PostgresCaptureStore
from octopus.procedural.library import ProcedureLibrary
from octopus.procedural.recall import ProcedureRecall
from octopus.procedural.review import ProcedureReview
from octopus.procedural.store import PostgresProcedureStore
from octopus.procedural.trial import ProcedureTrial
from octopus.read_phase import ReadPhase
from octopus.semantic.chunking import Chunker, share_of
from octopus.semantic.extract.limits import Limits
from octopus.semantic.extract.sandbox import SandboxedReader
from octopus.semantic.ingest import IngestDocument
from octopus.semantic.library import KnowledgeLibrary
from octopus.semantic.news import DocumentNews
from octopus.semantic.recall import KnowledgeRecall
from octopus.semantic.reindex import ReindexAgent, ReindexLane
from octopus.semantic.remove import RemoveDocument
from octopus.semantic.search_store import PostgresKnowledgeSearch
from octopus.semantic.store import PostgresKnowledgeStore
from octopus.settings import Settings, settings
from octopus.tools.builtin import BuiltIn, close_session, search_knowledge
from octopus.tools.registry import ToolRegistry
from octopus.tools.store import PostgresToolStore
from octopus.tools.toolbox import AgentToolBox
from octopus.turn import TurnRunner
from octopus.turn_types import TurnPolicy
from octopus.working.folding import Folding
from octopus.working.inspector import Inspector
from octopus.working.store import PostgresFactorStore, PostgresInspectorStore
from octopus.working.token_factor import TokenFactors

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

T = TypeVar("T")


class Services:
    """Everything that an entry point may call."""

    def __init__(self, configured: Settings) -> None:
        self.settings = configured

    # Outside

    @cached_property
    def database(self) -> Database:
        return self._database_at(_needed(self.settings.database_url, "OCTOPUS_DATABASE_URL"))

    def _database_at(self, url: SecretStr) -> Database:
        return Database(
            self._address(url),
            pool_size=self.settings.database_pool_size,
            connect_timeout_s=self.settings.database_connect_timeout_s,
        )

    def _address(self, url: SecretStr) -> Address:
        make = IamAddress if self.settings.database_auth == "iam" else fixed_address
        return make(url.get_secret_value())

    async def migrate(self, *, may_roll_back: bool) -> list[str]:
        """Bring the schema up to date as the owner; the names of the files applied now."""
        url = _needed(self.settings.owner_database_url, "OCTOPUS_OWNER_DATABASE_URL")
        secret = self.settings.owner_secret
        address = secret_address(url.get_secret_value(), secret) if secret else self._address(url)
        directory = _needed(self.settings.migrations_dir, "OCTOPUS_MIGRATIONS_DIR")
        return await migrate(await address(), directory, ahead_s=ROLLBACK_S if may_roll_back else 0.0)

    @cached_property
    def embedder(self) -> Embedder:
        if self.settings.embeddings == "minilm":
            from octopus.cloud.minilm import MiniLmEmbedder

            return MiniLmEmbedder()
        from octopus.cloud.titan import TitanEmbedder

        return TitanEmbedder()

    @cached_property
    def space(self) -> EmbeddingSpace:
        return EmbeddingSpace(self.database, self.embedder)

    @cached_property
    def model(self) -> AnthropicModel:
        return AnthropicModel(self._model_client, summary_model=self.settings.summary_model or self.settings.model)

    async def _model_client(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, AsyncAnthropicBedrock

        timeout = self.settings.model_timeout_s
        if self.settings.model_provider == "bedrock":
            # The same messages interface with AWS credentials; the SDK types it apart.
            return cast("AsyncAnthropic", AsyncAnthropicBedrock(timeout=timeout))
        key = await secret_string(_needed(self.settings.model_secret, "OCTOPUS_MODEL_SECRET"))
        return AsyncAnthropic(api_key=key, base_url=self.settings.anthropic_base_url, timeout=timeout)

    @cached_property
    def verifier(self) -> TokenVerifier:
        return JwtVerifier(
            issuer=_needed(self.settings.jwt_issuer, "OCTOPUS_JWT_ISSUER"),
            audience=_needed(self.settings.jwt_audience, "OCTOPUS_JWT_AUDIENCE"),
            jwks_url=_needed(self.settings.jwks_url, "OCTOPUS_JWKS_URL"),
            tenant_claim=self.settings.jwt_tenant_claim,
            groups_claim=self.settings.jwt_groups_claim,
        )

    # Agents and conversations

    @cached_property
    def agents(self) -> AgentRegistry:
        return AgentRegistry(PostgresAgentStore(self.database))

    @cached_property
    def log(self) -> PostgresConversationLog:
        return PostgresConversationLog(self.database)

    @cached_property
    def sessions(self) -> Sessions:
        bus = EventBridgeBus(_needed(self.settings.event_bus, "OCTOPUS_EVENT_BUS"))
        return Sessions(PostgresSessionStore(self.database), bus)

    @cached_property
    def sweep_database(self) -> Database:
        return self._database_at(_needed(self.settings.sweep_database_url, "OCTOPUS_SWEEP_DATABASE_URL"))

    @cached_property
    def session_sweep(self) -> SessionSweep:
        return SessionSweep(PostgresSessionFinder(self.sweep_database), self.sessions)

    # Episodic memory

    @cached_property
    def episode_store(self) -> PostgresEpisodeStore:
        return PostgresEpisodeStore(self.database, self.space)

    @cached_property
    def episodic(self) -> EpisodicRecall:
        return EpisodicRecall(self.episode_store, self.embedder)

    @cached_property
    def episodes(self) -> Episodes:
        return Episodes(self.episode_store, self.episodic, self.embedder)

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

    # A turn

    @cached_property
    def turns(self) -> TurnRunner:
        return TurnRunner(
            log=self.log,
            read_phase=ReadPhase(
                self.guidance,
                self.knowledge,
                self.episodic,
                deadline_s=self.settings.recall_deadline_ms / 1000,
                observer=self.observer,
            ),
            embedder=self.embedder,
            model=self.model,
            toolbox=self.toolbox,
            factors=TokenFactors(PostgresFactorStore(self.database), count_tokens, self.settings.model_token_factor),
            folding=Folding(self.log, self.model),
            observer=self.observer,
            end_session=self.sessions.end_if_requested,
            policy=TurnPolicy(
                model=self.settings.model,
                message_max_chars=self.settings.message_max_chars,
                lease_s=self.settings.turn_lease_s,
                max_s=self.settings.turn_max_s,
                cache_minimum_tokens=self.settings.model_cache_min_tokens,
            ),
        )

    @cached_property
    def inspector(self) -> Inspector:
        return Inspector(PostgresInspectorStore(self.database))

    @cached_property
    def observer(self) -> PowertoolsObserver:
        return PowertoolsObserver()

    # Semantic memory

    @cached_property
    def knowledge_store(self) -> PostgresKnowledgeStore:
        return PostgresKnowledgeStore(self.database, self.space)

    @cached_property
    def knowledge(self) -> KnowledgeRecall:
        return KnowledgeRecall(PostgresKnowledgeSearch(self.database, self.space), self.embedder.calibration)

    @cached_property
    def knowledge_library(self) -> KnowledgeLibrary:
        return KnowledgeLibrary(
            self.knowledge_store,
            self.objects,
            self.index_queue,
            self.knowledge,
            self.embedder,
            max_bytes=self.settings.upload_max_bytes,
        )

    @cached_property
    def document_reader(self) -> SandboxedReader:
        return SandboxedReader(Limits(pages=self.settings.document_max_pages), self.settings.library_path)

    @cached_property
    def ingest_document(self) -> IngestDocument:
        size, overlap = self.settings.chunk_tokens, self.settings.chunk_overlap_tokens
        share = share_of(size, count_tokens, self.embedder)
        return IngestDocument(
            self.knowledge_store,
            self.objects,
            self.document_reader,
            Chunker(share, overlap / size, self.settings.chunk_strategy),
            self.embedder,
            self.index_queue,
            self.document_news,
            count_tokens,
            cutting=f"{self.settings.chunk_strategy} {size}/{overlap}",
            max_bytes=self.settings.upload_max_bytes,
        )

    @cached_property
    def remove_document(self) -> RemoveDocument:
        return RemoveDocument(self.knowledge_store, self.objects, self.document_news)

    @cached_property
    def reindex_agent(self) -> ReindexAgent:
        return ReindexAgent(self.knowledge_store, self.index_queue)

    @cached_property
    def reindex_lane(self) -> ReindexLane:
        return ReindexLane(self.knowledge_store, self.index_queue, self.ingest_document)

    @cached_property
    def document_news(self) -> DocumentNews:
        return DocumentNews(EventBridgeBus(_needed(self.settings.event_bus, "OCTOPUS_EVENT_BUS")), self.knowledge_store)

    @cached_property
    def index_queue(self) -> SqsIndexQueue:
        return SqsIndexQueue(_needed(self.settings.ingest_queue_url, "OCTOPUS_INGEST_QUEUE_URL"))

    @cached_property
    def objects(self) -> S3Objects:
        return S3Objects(_needed(self.settings.bucket, "OCTOPUS_BUCKET"))

    # Procedural memory

    @cached_property
    def procedure_store(self) -> PostgresProcedureStore:
        return PostgresProcedureStore(self.database, self.space)

    @cached_property
    def guidance(self) -> ProcedureRecall:
        return ProcedureRecall(self.procedure_store, self.embedder)

    @cached_property
    def procedures(self) -> ProcedureLibrary:
        return ProcedureLibrary(self.procedure_store, self.embedder, four_eyes=self.settings.procedures_four_eyes)

    @cached_property
    def capture_store(self) -> PostgresCaptureStore:
        return PostgresCaptureStore(self.database, self.space)

    @cached_property
    def procedure_review(self) -> ProcedureReview:
        return ProcedureReview(self.procedures, self.capture_store, PostgresSessionStore(self.database))

    @cached_property
    def procedure_capture(self) -> ProcedureCapture:
        return ProcedureCapture(
            self.capture_store,
            self.procedure_store,
            self.guidance,
            PostgresSessionStore(self.database),
            PostgresAgentStore(self.database),
            self.model,
            self.embedder,
            EventBridgeBus(_needed(self.settings.event_bus, "OCTOPUS_EVENT_BUS")),
        )

    @cached_property
    def procedure_trial(self) -> ProcedureTrial:
        return ProcedureTrial(self.procedure_store, self.embedder, self.guidance, self.agents)

    # Tools

    @cached_property
    def tool_store(self) -> PostgresToolStore:
        return PostgresToolStore(self.database)

    @cached_property
    def tool_endpoints(self) -> ToolEndpoints:
        return ToolEndpoints(
            function_prefix=self.settings.tool_function_prefix,
            hosts=self.settings.tool_hosts,
            secrets_prefix=self.settings.tool_secrets_prefix,
        )

    @cached_property
    def built_in_tools(self) -> list[BuiltIn]:
        agents = PostgresAgentStore(self.database)
        return [
            search_knowledge(self.knowledge, agents, self.embedder),
            close_session(self.sessions.request_end),
        ]

    @cached_property
    def toolbox(self) -> AgentToolBox:
        return AgentToolBox(
            self.built_in_tools,
            self.tool_store,
            self.tool_endpoints,
            count_tokens,
            result_max_tokens=self.settings.tool_result_max_tokens,
        )

    @cached_property
    def tools(self) -> ToolRegistry:
        reserved = {tool.spec.name for tool in self.built_in_tools}
        return ToolRegistry(self.tool_store, self.tool_endpoints, self.agents, reserved)


def _needed(value: T | None, variable: str) -> T:
    if value is None:
        raise OctopusError(f"Set the environment variable {variable}.")
    return value


@cache
def services() -> Services:
    """The services of this execution environment."""
    return Services(settings())
