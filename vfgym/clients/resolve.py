"""Which client class asks: by a configuration's ``client_type``, or by the SDK client that was given."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, cast

from vfgym.clients.client import Client
from vfgym.clients.config import DEFAULT_CLIENT_TYPE, ClientConfig, ClientType, EndpointClientConfig, check_client_type
from vfgym.clients.provider import ProviderClient
from vfgym.errors import ConfigurationError

_CLASSES: Mapping[ClientType, tuple[str, str]] = {
    "openai_chat_completions": ("vfgym.clients.providers.openai_chat_completions", "OpenAIChatCompletionsClient"),
    "openai_chat_completions_token": ("vfgym.clients.providers.openai_chat_completions_token", "OpenAIChatCompletionsTokenClient"),
    "openai_completions": ("vfgym.clients.providers.openai_completions", "OpenAICompletionsClient"),
    "openai_responses": ("vfgym.clients.providers.openai_responses", "OpenAIResponsesClient"),
    "anthropic_messages": ("vfgym.clients.providers.anthropic_messages", "AnthropicMessagesClient"),
    "nemorl_chat_completions": ("vfgym.clients.providers.nemorl_chat_completions", "NeMoRLChatCompletionsClient"),
    "renderer": ("vfgym.clients.providers.renderer", "RendererClient"),
}


def client_class(client_type: ClientType) -> type[ProviderClient[Any, Any, Any, Any]]:
    """Return the class that speaks an API.

    Raises:
        ConfigurationError: If there is no such client type.
    """
    check_client_type(client_type)
    module, name = _CLASSES[client_type]
    return cast("type[ProviderClient[Any, Any, Any, Any]]", getattr(importlib.import_module(module), name))


def resolve_client(client_or_config: Any, client_type: ClientType | None = None) -> Client:
    """Return who is asked.

    Args:
        client_or_config: A `Client` (returned as it is), a `ClientConfig`, or a client of the OpenAI or Anthropic SDK. A
            synchronous SDK client is replaced by an asynchronous one with the same key and URL.
        client_type: The API to speak with an OpenAI SDK client; chat completions by default.

    Raises:
        ConfigurationError: If it is none of these.
    """
    if isinstance(client_or_config, Client):
        return client_or_config
    if isinstance(client_or_config, EndpointClientConfig):
        config = client_or_config.single() if isinstance(client_or_config, ClientConfig) else client_or_config
        return client_class(config.client_type)(config)
    sdk = type(client_or_config).__module__.partition(".")[0]
    if sdk == "openai":
        return client_class(client_type or DEFAULT_CLIENT_TYPE)(_asynchronous(client_or_config, "AsyncOpenAI"))
    if sdk == "anthropic":
        return client_class("anthropic_messages")(_asynchronous(client_or_config, "AsyncAnthropic"))
    if callable(getattr(client_or_config, "get_response", None)):
        return cast(Client, client_or_config)
    raise ConfigurationError(
        "expected who is asked: a Client, a ClientConfig, or a client of the openai or anthropic SDK;"
        f" got {type(client_or_config).__name__}"
    )


def resolve_endpoints(client_or_config: Any) -> list[Client]:
    """Return who is asked: one client for each endpoint of a configuration, else the one (see `resolve_client`)."""
    if not isinstance(client_or_config, ClientConfig):
        return [resolve_client(client_or_config)]
    clients = [resolve_client(each) for each in client_or_config.endpoints()]
    for client in clients if len(clients) > 1 else ():
        cast("ProviderClient[Any, Any, Any, Any]", client).taking_turns = client_or_config.base_urls
    return clients


def _asynchronous(client: Any, class_name: str) -> Any:
    """Return an SDK client itself if it is asynchronous, else one that is and has the same settings."""
    name = type(client).__name__
    if name.startswith("Async") or class_name.removeprefix("Async") not in {base.__name__ for base in type(client).__mro__}:
        return client
    asynchronous = getattr(importlib.import_module(type(client).__module__.partition(".")[0]), class_name)
    taken = inspect.signature(asynchronous).parameters
    settings = {name: getattr(client, name) for name in ("organization", "project") if name in taken and hasattr(client, name)}
    return asynchronous(
        api_key=client.api_key,
        base_url=client.base_url,
        timeout=client.timeout,
        max_retries=client.max_retries,
        default_headers=dict(client._custom_headers),
        default_query=dict(client._custom_query),
        **settings,
    )
