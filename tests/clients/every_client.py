"""One client of each kind, and of each SDK client that may be given, all of one endpoint."""

from __future__ import annotations

import importlib
from typing import Any

import anthropic
import openai

from tests.clients.canned_server import completion
from tests.clients.providers.test_renderer import Client as ByteRendererClient
from tests.clients.providers.test_renderer import completion as generated
from vfgym.clients import Client, ClientConfig, client_class, resolve_client
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient


class ThroughTheSDK(OpenAIChatCompletionsClient):
    """Has a step of its own, so it is asked through the SDK."""

    async def from_native_response(self, response: Any) -> Any:
        return await super().from_native_response(response)


KINDS = (
    *("openai_chat_completions", "through the SDK", "openai_chat_completions_token", "nemorl_chat_completions", "openai_completions"),
    *("openai_responses", "anthropic_messages", "renderer"),
)
"""The clients that are made of a configuration."""

GIVEN = ("AsyncOpenAI", "AsyncAnthropic", "Anthropic")
"""SDK clients that are given as they are."""

CHAT_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
USAGE = {"input_tokens": 7, "output_tokens": 3}


def answers_by_route(usage: Any = None) -> dict[str, Any]:
    """Return a good answer of each API, by its route. `usage` replaces some of what it tells of tokens, in either spelling."""
    chat = {**CHAT_USAGE, **(usage or {})}
    other = {**USAGE, **(usage or {})}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    return {
        "/v1/chat/completions": completion(usage=chat),
        "/v1/chat/completions/tokens": completion(usage=chat),
        "/v1/completions": {
            **completion(usage=chat),
            "object": "text_completion",
            "choices": [{"index": 0, "text": "Oslo.", "finish_reason": "stop"}],
        },
        "/v1/responses": {
            **{"id": "resp_1", "object": "response", "created_at": 5, "model": "served-model", "status": "completed", "usage": other},
            "output": [{**said, "content": [{"type": "output_text", "text": "Oslo.", "annotations": []}]}],
        },
        "/v1/messages": {
            **{"id": "msg_1", "type": "message", "role": "assistant", "model": "served-model", "stop_reason": "end_turn", "usage": other},
            "content": [{"type": "text", "text": "Oslo."}],
        },
        "/inference/v1/generate": generated("Oslo."),
    }


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
