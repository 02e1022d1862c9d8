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
from octopus.cloud.identity import JwtVerifier
from octopus.cloud.migrations import migrate
from octopus.cloud.secrets import secret_string
from octopus.conversations.store import PostgresConversationLog
from octopus.embedding import Embedder
from octopus.errors import OctopusError
from octopus.identity import TokenVerifier
from octopus.settings import Settings, settings

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

    async def migrate(self) -> list[str]:
        """Bring the schema up to date as the owner; the names of the files applied now."""
        url = _needed(self.settings.owner_database_url, "OCTOPUS_OWNER_DATABASE_URL")
        secret = self.settings.owner_secret
        address = secret_address(url.get_secret_value(), secret) if secret else self._address(url)
        return await migrate(await address(), _needed(self.settings.migrations_dir, "OCTOPUS_MIGRATIONS_DIR"))

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


def _needed(value: T | None, variable: str) -> T:
    if value is None:
        raise OctopusError(f"Set the environment variable {variable}.")
    return value


@cache
def services() -> Services:
    """The services of this execution environment."""
    return Services(settings())
