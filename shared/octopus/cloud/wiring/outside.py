"""Everything outside: settings, databases, models, identity."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast, get_args

from pydantic import SecretStr

from octopus.cloud.anthropic_model import AnthropicModel
from octopus.cloud.database import Database
from octopus.cloud.database_address import Address, IamAddress, fixed_address, secret_address
from octopus.cloud.embedding_space import EmbeddingSpace
from octopus.cloud.events import EventBridgeBus
from octopus.cloud.identity import JwtVerifier
from octopus.cloud.migrations import ROLLBACK_S, migrate
from octopus.cloud.secrets import secret_string
from octopus.cloud.titan import DIMENSIONS as TITAN_DIMENSIONS
from octopus.cloud.titan import TitanEmbedder
from octopus.embedding import Embedder
from octopus.errors import EmbeddingSpaceMismatch, InvalidInput, OctopusError
from octopus.identity import TokenVerifier
from octopus.query_vectors import QueryEmbedder
from octopus.settings import Embeddings, Settings

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

T = TypeVar("T")


class Outside:
    """Adapters to the outside, each made when first asked for."""

    def __init__(self, configured: Settings) -> None:
        self.settings = configured

    @cached_property
    def database(self) -> Database:
        return self._database_at(needed(self.settings.database_url, "OCTOPUS_DATABASE_URL"))

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
        url = needed(self.settings.owner_database_url, "OCTOPUS_OWNER_DATABASE_URL")
        secret = self.settings.owner_secret
        address = secret_address(url.get_secret_value(), secret) if secret else self._address(url)
        directory = needed(self.settings.migrations_dir, "OCTOPUS_MIGRATIONS_DIR")
        return await migrate(await address(), directory, ahead_s=ROLLBACK_S if may_roll_back else 0.0)

    @cached_property
    def embedder(self) -> Embedder:
        return self.embedder_named(self.settings.embeddings)

    def embedder_named(self, name: Embeddings) -> Embedder:
        """Raises `InvalidInput` where the embedder's packages are not installed."""
        if name != "minilm":
            return TitanEmbedder(TITAN_DIMENSIONS[name])
        try:
            from octopus.cloud.minilm import MiniLmEmbedder
        except ImportError as exc:
            raise InvalidInput("The embedder minilm is not part of this deployment; choose one of Titan's.") from exc
        return MiniLmEmbedder()

    def embedder_of(self, model: str) -> Embedder:
        """The embedder of a model that vectors are of. Raises `EmbeddingSpaceMismatch` where it cannot be run."""
        for name in get_args(Embeddings):
            with suppress(InvalidInput):
                if (embedder := self.embedder_named(name)).model == model:
                    return embedder
        raise EmbeddingSpaceMismatch(f"Stored vectors are of {model}, which this deployment cannot run.")

    @cached_property
    def query_embedder(self) -> QueryEmbedder:
        return QueryEmbedder(self.embedder)

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
        key = await secret_string(needed(self.settings.model_secret, "OCTOPUS_MODEL_SECRET"))
        return AsyncAnthropic(api_key=key, base_url=self.settings.anthropic_base_url, timeout=timeout)

    @cached_property
    def bus(self) -> EventBridgeBus:
        return EventBridgeBus(needed(self.settings.event_bus, "OCTOPUS_EVENT_BUS"))

    @cached_property
    def verifier(self) -> TokenVerifier:
        return JwtVerifier(
            issuer=needed(self.settings.jwt_issuer, "OCTOPUS_JWT_ISSUER"),
            audience=needed(self.settings.jwt_audience, "OCTOPUS_JWT_AUDIENCE"),
            jwks_url=needed(self.settings.jwks_url, "OCTOPUS_JWKS_URL"),
            tenant_claim=self.settings.jwt_tenant_claim,
            groups_claim=self.settings.jwt_groups_claim,
        )

    @cached_property
    def sweep_database(self) -> Database:
        return self._database_at(needed(self.settings.sweep_database_url, "OCTOPUS_SWEEP_DATABASE_URL"))


def needed(value: T | None, variable: str) -> T:
    """The value. Raises `OctopusError`, naming the environment variable, when it is not set."""
    if value is None:
        raise OctopusError(f"Set the environment variable {variable}.")
    return value
