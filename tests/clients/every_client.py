"""One client of each kind, and of each SDK client that may be given, all of one endpoint."""

from __future__ import annotations

import importlib
from typing import Any

import anthropic
import openai

from tests.clients.providers.test_renderer import Client as ByteRendererClient
from vfgym.clients import Client, ClientConfig, client_class, resolve_client
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient


class ThroughTheSDK(OpenAIChatCompletionsClient):
    """Has a step of its own, so it is asked through the SDK."""

    async def from_native_response(self, response: Any) -> Any:
        return await super().from_native_response(response)


KINDS = (
    "openai_chat_completions",
    "through the SDK",
    "openai_chat_completions_token",
    "nemorl_chat_completions",
    "openai_completions",
    "openai_responses",
    "anthropic_messages",
    "renderer",
)
"""The clients that are made of a configuration."""

GIVEN = ("AsyncOpenAI", "AsyncAnthropic", "Anthropic")
"""SDK clients that are given as they are."""


def client_of(kind: str, url: str, **fields: Any) -> Client:
    """Return a client; `url` is without ``/v1``."""
    if kind in GIVEN:
        sdk: Any = {"AsyncOpenAI": openai.AsyncOpenAI, "AsyncAnthropic": anthropic.AsyncAnthropic, "Anthropic": anthropic.Anthropic}[kind]
        return resolve_client(sdk(api_key="k", base_url=f"{url}/v1" if kind == "AsyncOpenAI" else url, **fields))
    config = ClientConfig(**{"api_base_url": url if kind == "anthropic_messages" else f"{url}/v1", "api_key": "k", **fields})
    if kind == "through the SDK":
        return ThroughTheSDK(config)
    if kind == "renderer":
        return ByteRendererClient(config, importlib.import_module("renderers"))
    return client_class(kind)(config)  # type: ignore[arg-type]
