"""SDK clients, and what they are made of, from a `ClientConfig`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vfgym.clients import ClientConfig, EndpointClientConfig
from vfgym.clients.config import load_prime_config

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

__all__ = [
    "load_prime_config",
    "resolve_client_config",
    "resolve_client_configs",
    "setup_anthropic_client",
    "setup_http_client",
    "setup_openai_client",
]


def resolve_client_configs(config: EndpointClientConfig) -> list[EndpointClientConfig]:
    """Return one configuration for each endpoint, completed from the common one."""
    return list(config.endpoints()) if isinstance(config, ClientConfig) else [config]


def resolve_client_config(config: EndpointClientConfig) -> EndpointClientConfig:
    """Return the one configuration that is meant where only one can be used: number ``client_idx`` of the endpoints."""
    return config.single() if isinstance(config, ClientConfig) else config


def setup_http_client(config: EndpointClientConfig) -> httpx2.AsyncClient:
    """Return an HTTP client with a configuration's headers, limits and timeouts. It may be used on any event loop.

    Whoever asked for it closes it, with ``await client.aclose()``.
    """
    import httpx2

    from vfgym.clients.http.sdk import AiohttpTransport
    from vfgym.clients.http.transport import Connections

    class OwnConnections(AiohttpTransport):
        async def aclose(self) -> None:
            await self.connections.close()

    single = resolve_client_config(config)
    return httpx2.AsyncClient(
        transport=OwnConnections(Connections(single)),
        timeout=httpx2.Timeout(single.timeout, connect=single.connect_timeout),
        headers=single.resolve_headers(),
        follow_redirects=True,
    )


def setup_openai_client(config: EndpointClientConfig) -> AsyncOpenAI:
    """Return a client of the OpenAI SDK with a configuration's address, key, headers, limits and timeouts.

    Whoever asked for it closes it, with ``await client.close()``.
    """
    from openai import AsyncOpenAI

    return AsyncOpenAI(**_build_sdk_arguments(config))


def setup_anthropic_client(config: EndpointClientConfig) -> AsyncAnthropic:
    """Return a client of the Anthropic SDK with a configuration's address, key, headers, limits and timeouts.

    Whoever asked for it closes it, with ``await client.close()``.
    """
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(**_build_sdk_arguments(config))


def _build_sdk_arguments(config: EndpointClientConfig) -> dict[str, Any]:
    """Return a configuration as the arguments that the clients of both SDKs take."""
    import httpx2

    single = resolve_client_config(config)
    return {
        "api_key": single.resolve_api_key(),
        "base_url": single.api_base_url,
        "timeout": httpx2.Timeout(single.timeout, connect=single.connect_timeout),
        "max_retries": single.max_retries,
        "default_headers": single.resolve_headers(),
        "http_client": setup_http_client(single),
    }
