"""`ProviderClient`: the client of one provider's API, as its conversions to and from the library's own types."""

from __future__ import annotations

import copy
import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from vfgym.calls import maybe_await
from vfgym.clients.asking import count_sendings_of
from vfgym.clients.client import Client, SamplingArgs
from vfgym.clients.config import ClientConfig, EndpointClientConfig
from vfgym.clients.faults import (
    ASKED_BY_PROGRAM,
    describe_key,
    ends_only_rollout,
    is_authentication_error,
    is_outage,
    is_overlong_prompt,
    is_unknown_model,
)
from vfgym.clients.formats.usage import TellUnusable, warn_of_unusable
from vfgym.clients.http.retries import describe_refusal_to_wait
from vfgym.clients.http.transport import Connections
from vfgym.errors import ConfigurationError, Error, ModelError, OverlongPromptError
from vfgym.messages import Message, Response, ResponseMessage, as_messages
from vfgym.output.redaction import REDACTED, excerpt, forget_locals, redact_error, redact_keys, redact_url, with_secrets
from vfgym.state import MessagesView
from vfgym.tools import Tool

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ClientT = TypeVar("ClientT")
MessagesT = TypeVar("MessagesT")
ResponseT = TypeVar("ResponseT")
ToolT = TypeVar("ToolT")


class ProviderClient(Client, Generic[ClientT, MessagesT, ResponseT, ToolT]):
    """Asks one provider: converts conversation and tools to its format, calls it, and converts the answer back.

    A subclass writes the conversions. The type parameters are the SDK's client, its prompt, its response and its tool.
    """

    _answering: frozenset[str] = frozenset()
    """Models that have answered."""

    taking_turns = ""
    """The URLs of all endpoints that take turns with this one, as results name them: whichever is asked, the model is the same."""

    _has_told_unusable = False
    """Whether it was warned of a usage that cannot be."""

    def __init__(self, client_or_config: ClientT | ClientConfig | EndpointClientConfig) -> None:
        """Take an SDK's client as it is, or a configuration to make one of.

        Args:
            client_or_config: With a configuration, the SDK's client is made when it is first needed. It may be used on any
                event loop.
        """
        is_config = isinstance(client_or_config, EndpointClientConfig)
        self.config: EndpointClientConfig | None = cast(EndpointClientConfig, client_or_config) if is_config else None
        if isinstance(self.config, ClientConfig):
            self.config = self.config.single()
        self._sdk_client: ClientT | None = None if is_config else cast(ClientT, client_or_config)
        if self._sdk_client is not None:
            learn_secrets_of(self._sdk_client)
            count_sendings_of(self._sdk_client)
        self._connections: Connections | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What is made of the rest is made again, as it has keys in it: an SDK's client, routes with their headers.
        made = {name for name in self.__dict__ if isinstance(inspect.getattr_static(type(self), name, None), functools.cached_property)}
        return {**{name: value for name, value in self.__dict__.items() if name not in made}, "_sdk_client": None}

    def __copy__(self) -> Self:
        return self._copy_client(lambda state: state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._copy_client(lambda state: copy.deepcopy(state, memo))

    def _copy_client(self, copied_state: Callable[[dict[str, Any]], dict[str, Any]]) -> Self:
        copied = object.__new__(type(self))
        copied.__dict__.update(copied_state(self.__getstate__()))
        if self.config is None:  # an SDK's client cannot be copied, and may be used from anywhere
            copied._sdk_client = self._sdk_client
        return copied

    @property
    def client(self) -> ClientT:
        """The SDK's client: the one given, or one made of the configuration.

        Raises:
            ConfigurationError: If one was given, and was left out when this client was pickled.
        """
        if self._sdk_client is None:
            if self.config is None:
                raise ConfigurationError(
                    f"this {type(self).__name__} was made of an SDK's client, and pickles hold no keys and so no such client: make it"
                    " again, or of a ClientConfig whose api_key_var names the environment variable of the key"
                )
            self._sdk_client = self.setup_client(cast(ClientConfig, self.config))
            count_sendings_of(self._sdk_client)
        return self._sdk_client

    @property
    def connections(self) -> Connections:
        """The connections to the configuration's endpoint; `close` closes them.

        Raises:
            ConfigurationError: If the client was made of an SDK's client, which has its own.
        """
        if self._connections is None:
            if self.config is None:
                raise ConfigurationError(f"{type(self).__name__} was made of an SDK's client: its connections are that client's own")
            self._connections = Connections(self.config)
        return self._connections

    @property
    def answered_by(self) -> str:
        """The class, and the URL of the server, without secrets; those of all endpoints that take turns."""
        url = str(getattr(self._sdk_client, "base_url", "")) if self.config is None else self.config.api_base_url
        urls = self.taking_turns or redact_url(url).rstrip("/")
        return f"{type(self).__module__}.{type(self).__qualname__} {urls}"

    async def close(self) -> None:
        """Close the SDK's client and the connections of every event loop. A second call does nothing.

        A client that was made of a configuration opens new connections when it is used again.
        """
        sdk_client = self._sdk_client
        if self.config is not None:
            self._sdk_client = None
        close = getattr(sdk_client, "close", None)
        if close is not None:
            await maybe_await(close)
        if self._connections is not None:
            await self._connections.close()

    @abstractmethod
    def setup_client(self, config: ClientConfig) -> ClientT:
        """Make the SDK's client of a configuration (see `vfgym.clients.http.sdk`)."""

    @abstractmethod
    async def to_native_prompt(self, messages: Sequence[Message]) -> tuple[MessagesT, dict[str, Any]]:
        """Return a conversation in the provider's format, and further arguments that the call needs for it."""

    @abstractmethod
    async def to_native_tool(self, tool: Tool) -> ToolT:
        """Return a tool in the provider's format."""

    async def to_native_tools(self, tools: Sequence[Tool] | None) -> list[ToolT] | None:
        """Return tools in the provider's format; None for none."""
        return None if tools is None else [await self.to_native_tool(tool) for tool in tools]

    @abstractmethod
    async def get_native_response(
        self, prompt: MessagesT, model: str, sampling_args: SamplingArgs, tools: list[ToolT] | None = None, **kwargs: Any
    ) -> ResponseT:
        """Call the provider.

        Args:
            prompt: The conversation in the provider's format.
            model: Name of the model.
            sampling_args: Generation parameters.
            tools: Tools in the provider's format.
            **kwargs: What `to_native_prompt` gave besides, ``state``, and ``extra_headers``: all those of this request, those among
                the sampling arguments included.
        """

    @abstractmethod
    async def raise_from_native_response(self, response: ResponseT) -> None:
        """Raise a `ModelError` for a response that cannot be used; `EmptyModelResponseError` for one with nothing in it."""

    @abstractmethod
    async def from_native_response(self, response: ResponseT) -> Response:
        """Return the provider's response as a `Response`."""

    async def get_response(
        self,
        prompt: Sequence[Message],
        model: str,
        sampling_args: SamplingArgs | None = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> Response:
        """Ask for the next message of a conversation (see `Client.get_response`).

        Raises:
            OverlongPromptError: If the prompt does not fit into the model's context.
            ModelError: If there is no usable answer; its cause is what went wrong.
            openai.AuthenticationError: If the provider refuses the key (each SDK's own 401 and 403 errors), or knows no such model
                or route (404): nothing that is asked so can succeed. Where a program wrote the prompt (`ASKED_BY_PROGRAM`), 403 and 404
                are a `ModelError`.
        """
        sampling_args = sampling_args or {}
        try:
            messages = as_messages(list(prompt) if isinstance(prompt, MessagesView) else prompt)
            of_the_run, of_the_state = sampling_args.get("extra_headers") or {}, self.state_headers(kwargs.get("state"))
            headers = {**of_the_run, **of_the_state, **(kwargs.pop("extra_headers", None) or {})}
            if headers:
                kwargs["extra_headers"] = headers
            _check_secrets(headers, sampling_args.get("extra_query"))
            response = await self._ask(messages, model, sampling_args, tools, kwargs)
            if model not in self._answering:
                self._answering |= {model}
            return _without_keys(response)
        except Exception as error:
            self._learn_secrets(sampling_args, kwargs)
            redact_error(error)
            forget_locals(error)
            if isinstance(error, Error):
                raise
            refusal = self._refusal(error, model)
            if refusal is not None:
                if (kwargs.get("state") or {}).get(ASKED_BY_PROGRAM) and ends_only_rollout(error):
                    raise ModelError(f"{refusal}: {error}") from error
                error.add_note(refusal)
                raise
            if is_overlong_prompt(error):
                raise OverlongPromptError(f"the prompt is longer than the context of {model}: {error}") from error
            own = _find_own_error(error)
            if own is not None:
                raise own from own.__cause__
            why = describe_refusal_to_wait(error)
            waits = "" if why is None else f" ({why})"
            failure = ModelError(f"{self._where()} gave no usable answer: {type(error).__name__}: {error}{_page(error)}{waits}")
            if is_outage(error):
                failure.failure_cause = "infrastructure"
            raise failure from error

    async def _ask(
        self, messages: list[Message], model: str, sampling_args: SamplingArgs, tools: Sequence[Tool] | None, kwargs: dict[str, Any]
    ) -> Response:
        native_prompt, arguments = await self.to_native_prompt(messages)
        native_tools = await self.to_native_tools(tools or None)
        native = await self.get_native_response(native_prompt, model, sampling_args, native_tools, **{**arguments, **kwargs})
        await self.raise_from_native_response(native)
        return await self.from_native_response(native)

    def state_headers(self, state: Mapping[str, Any] | None) -> dict[str, str]:
        """Return the headers whose values the configuration takes from an episode's state; items that are None are left out."""
        if self.config is None or not self.config.extra_headers_from_state or state is None:
            return {}
        values = {header: state.get(key) for header, key in self.config.extra_headers_from_state.items()}
        headers = {header: str(value) for header, value in values.items() if value is not None}
        return with_secrets({"headers": headers}, passes_by=True)["headers"]  # type: ignore[no-any-return]

    def _refusal(self, error: Exception, model: str) -> str | None:
        """Say what is refused for good, the key or the model; None where an error is about something else."""
        if is_authentication_error(error):
            return f"{self._where()} refused the API key: {describe_key(self.config)}"
        if is_unknown_model(error, has_answered=model in self._answering):
            return f"{self._where()} does not know the model {model!r}, or there is no such API below its URL"
        return None

    def _where(self) -> str:
        return f"the provider at {redact_url(self.config.api_base_url)}" if self.config is not None else "the provider"

    def _tell_unusable(self, model: Any) -> TellUnusable:
        """Return what warns, once for this client, that its server tells of an answer what is no number of tokens."""

        def tell(field: str, value: Any) -> None:
            if not self._has_told_unusable:
                self._has_told_unusable = True
                warn_of_unusable(self._where(), str(model or ""), field, value)

        return tell

    def _learn_secrets(self, sampling_args: SamplingArgs, kwargs: Mapping[str, Any]) -> None:
        """Let the process know the secrets of a request that failed, since its error may repeat them."""
        with_secrets(sampling_args, passes_by=True)
        with_secrets({"headers": kwargs.get("extra_headers")}, passes_by=True)
        if self.config is None:  # some SDKs ask for their key when they need it
            learn_secrets_of(self._sdk_client)


class OpenAISDKClient(ProviderClient["AsyncOpenAI", MessagesT, ResponseT, ToolT]):
    """A `ProviderClient` that asks through the SDK of OpenAI."""

    def setup_client(self, config: ClientConfig) -> AsyncOpenAI:
        """Make the SDK's client."""
        from vfgym.clients.http.sdk import openai_client

        return openai_client(config, self.connections)


def learn_secrets_of(sdk_client: Any) -> None:
    """Let the process know the keys, headers, queries and URLs that a client of an SDK was made with."""
    with_secrets(
        {
            "api_key": getattr(sdk_client, "api_key", None),
            "auth_token": getattr(sdk_client, "auth_token", None),
            "headers": getattr(sdk_client, "_custom_headers", None),
            "query": getattr(sdk_client, "_custom_query", None),
            "url": str(getattr(sdk_client, "base_url", "")),
        }
    )


def _check_secrets(*tables: Mapping[str, Any] | None) -> None:
    """Refuse to send what stands for a header or a parameter in a pickle."""
    lost = [name for table in tables if table for name, value in table.items() if value == REDACTED]
    if lost:
        raise ConfigurationError(f"the sampling arguments are without the values of {', '.join(lost)}: pickles hold none. Give them again")


def _without_keys(response: Response) -> Response:
    """Take the keys out of an answer: whoever reads it records it, and it may be kept for others."""
    message = response.message
    clean = {name: redact_keys(value) for name, value in message.items() if name not in ResponseMessage.OWN_FIELDS}
    if any(value is not message[name] for name, value in clean.items()):
        response.message = type(message).of_fields({**message, **clean})
    response.id, response.model = redact_keys(response.id), redact_keys(response.model)
    return response


def _find_own_error(error: BaseException) -> Error | None:
    """Return the library's own error of which an SDK made one of its own: anthropic 2 says "connection error" of anything."""
    link: BaseException | None = error
    while link is not None and not isinstance(link, Error):
        link = link.__cause__
    return link


def _page(error: Exception) -> str:
    """Return the beginning of an error's body that is not JSON (a gateway's page), which the SDKs do not show."""
    body = getattr(error, "body", None)
    return f" {excerpt(body, 200)}" if isinstance(body, str) and body else ""
