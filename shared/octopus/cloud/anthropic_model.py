"""The Anthropic SDK as a `ChatModel`: on the Anthropic API, on Bedrock, or on any server of the Messages API."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from octopus.cloud.telemetry import logger
from octopus.conversations.types import Block
from octopus.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable
from octopus.model import ModelRequest, Reply, Usage

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic
    from anthropic.lib.streaming import AsyncMessageStream
    from anthropic.types import Message

T = TypeVar("T", bound=BaseModel)
ClientFactory = Callable[[], Awaitable["AsyncAnthropic"]]
_PASSING = {408, 409, 425, 429}  # and every 5xx
# What the SDK raises for events that are no stream of the Messages API: broken, out of order, of a block never begun.
_NO_STREAM = (ValueError, AssertionError, LookupError, RuntimeError)
_LASTING_TYPES = {"invalid_request_error", "authentication_error", "permission_error", "not_found_error"}


class AnthropicModel:
    """Implements `octopus.model.ChatModel`."""

    def __init__(self, make_client: ClientFactory, *, summary_model: str) -> None:
        """The client is made on first use: importing the SDK takes about a second, which the read phase hides."""
        self._make_client = make_client
        self._summary_model = summary_model
        self._client: AsyncAnthropic | None = None
        self._making = asyncio.Lock()

    async def _ready_client(self) -> AsyncAnthropic:
        """Import the SDK and make the client, once."""
        async with self._making:
            if self._client is None:
                await asyncio.to_thread(importlib.import_module, "anthropic")
                self._client = await self._make_client()
        return self._client

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[_AnthropicStream]:
        client = await self._ready_client()
        with _provider_errors():
            async with client.messages.stream(
                **_arguments(request), model=request.model, max_tokens=request.max_tokens
            ) as stream:
                yield _AnthropicStream(stream)

    async def structured(
        self,
        *,
        model: str | None,
        system: str,
        messages: list[dict[str, Any]],
        schema: type[T],
        max_tokens: int,
    ) -> T:
        client = await self._ready_client()
        tool: Any = {
            "name": schema.__name__,
            "description": (schema.__doc__ or schema.__name__).strip(),
            "input_schema": schema.model_json_schema(),
        }
        with _provider_errors():
            message = await client.messages.create(
                model=model or self._summary_model,
                system=system,
                messages=cast("Any", messages),
                tools=[tool],
                tool_choice={"type": "tool", "name": schema.__name__},
                max_tokens=max_tokens,
            )
        arguments = next((block.input for block in message.content if block.type == "tool_use"), None)
        try:
            return schema.model_validate(arguments)
        except ValidationError as exc:
            raise ModelReplyInvalid(
                f"The model's {schema.__name__} does not validate ({exc.error_count()} errors; stop reason "
                f"{message.stop_reason})."
            ) from exc

    async def count_tokens(self, request: ModelRequest) -> int:
        client = await self._ready_client()
        with _provider_errors():
            counted = await client.messages.count_tokens(**_arguments(request), model=request.model)
        return counted.input_tokens


class _AnthropicStream:
    """Implements `octopus.model.ReplyStream`."""

    def __init__(self, stream: AsyncMessageStream[None]) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[str]:
        with _provider_errors():
            try:
                async for text in self._stream.text_stream:
                    yield text
                complete = self._stream.current_message_snapshot.stop_reason is not None
            except _NO_STREAM as exc:
                raise _broken_off(exc) from exc
        if not complete:
            raise ModelUnavailable("The model's answer broke off; retry.")

    def reply(self) -> Reply:
        message = self._stream.current_message_snapshot
        return Reply([_block(block) for block in message.content], message.stop_reason or "error", _usage(message))


def _arguments(request: ModelRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = {"messages": request.messages}
    if request.system:
        arguments["system"] = request.system
    if request.tools:
        arguments["tools"] = list(request.tools)
    return arguments


def _block(block: BaseModel) -> Block:
    """What the log keeps of a content block: just what the API takes back."""
    return block.model_dump(include={"type", "text", "id", "name", "input"}, exclude_none=True)


def _usage(message: Message) -> Usage:
    usage = message.usage
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
    )


@contextmanager
def _provider_errors() -> Iterator[None]:
    """Turn the SDK's errors into ours. The provider's own words go nowhere: they may quote prompt or account."""
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError as exc:
        raise _from_status(exc) from None
    except (anthropic.APIConnectionError, anthropic.APIResponseValidationError, httpx2.HTTPError) as exc:
        raise _broken_off(exc) from exc
    except anthropic.AnthropicError as exc:
        raise ModelRefused(f"The model provider cannot do this ({type(exc).__name__}).") from exc


def _from_status(error: APIStatusError) -> ModelUnavailable | ModelRefused:
    """An error that the provider reports, by status or, within a stream that began well, by type."""
    kind = _error_type(error.body)
    status = error.status_code
    passing = kind not in _LASTING_TYPES if status < 400 else status in _PASSING or status >= 500
    logger.warning("model provider error", extra={"status": status, "type": kind, "request_id": error.request_id})
    if passing:
        return ModelUnavailable(
            f"The model provider answered {kind or status}; retry.", retry_after=_retry_after(error)
        )
    if status in (401, 403):
        return ModelRefused("The model provider refuses the API key; check the model secret.")
    return ModelRefused(f"The model provider refused the request ({kind or status}); its log line has the request id.")


def _error_type(body: object) -> str | None:
    """``error.type`` of the provider's error document."""
    error = body.get("error") if isinstance(body, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    return kind if isinstance(kind, str) else None


def _broken_off(_: Exception) -> ModelUnavailable:
    return ModelUnavailable("The connection to the model provider broke; retry.", retry_after=1)


def _retry_after(error: APIStatusError) -> int:
    seconds = error.response.headers.get("retry-after", "")
    return int(seconds) if seconds.isdigit() else 2
