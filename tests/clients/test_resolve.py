"""Which client class asks, and what an SDK's client keeps when it becomes one."""

from __future__ import annotations

from typing import Any, get_args

import anthropic
import openai
import pytest

from tests.models import InOrder
from vfgym.clients import ClientConfig, ClientType
from vfgym.clients.resolve import client_class, resolve_client, resolve_endpoints
from vfgym.errors import ConfigurationError

CLASSES = {
    "openai_chat_completions": "OpenAIChatCompletionsClient",
    "openai_chat_completions_token": "OpenAIChatCompletionsTokenClient",
    "openai_completions": "OpenAICompletionsClient",
    "openai_responses": "OpenAIResponsesClient",
    "anthropic_messages": "AnthropicMessagesClient",
    "nemorl_chat_completions": "NeMoRLChatCompletionsClient",
    "renderer": "RendererClient",
}


def test_each_client_type_has_its_class() -> None:
    assert {kind: client_class(kind).__name__ for kind in get_args(ClientType)} == CLASSES
    with pytest.raises(ConfigurationError, match="openai_completion"):
        client_class("openai_completion")  # type: ignore[arg-type]


def config(**fields: Any) -> ClientConfig:
    return ClientConfig(**{"api_base_url": "http://a.example/v1", "api_key": "k", **fields})


def test_a_configuration_says_which() -> None:
    client: Any = resolve_client(config(client_type="openai_responses", max_retries=0))
    assert (type(client).__name__, client.config.api_base_url, client.config.max_retries) == (
        "OpenAIResponsesClient",
        "http://a.example/v1",
        0,
    )


def test_who_has_get_response_is_taken_as_it_is() -> None:
    client = InOrder()
    assert resolve_client(client) is client

    class Own:
        async def get_response(self) -> None: ...

    own = Own()
    assert resolve_client(own) is own
    assert resolve_endpoints(client) == [client]


@pytest.mark.parametrize("nobody", [None, "gpt", 7, ClientConfig])
def test_anything_else_is_refused(nobody: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected who is asked"):
        resolve_client(nobody)


@pytest.mark.parametrize(
    ("sdk", "client_type", "made"),
    [
        (openai.AsyncOpenAI, None, "OpenAIChatCompletionsClient"),
        (openai.AsyncOpenAI, "openai_completions", "OpenAICompletionsClient"),
        (anthropic.AsyncAnthropic, None, "AnthropicMessagesClient"),
        (anthropic.AsyncAnthropic, "openai_completions", "AnthropicMessagesClient"),
    ],
)
def test_an_sdks_client_is_kept(sdk: Any, client_type: Any, made: str) -> None:
    given = sdk(api_key="k")
    client: Any = resolve_client(given, client_type)
    assert type(client).__name__ == made
    assert client.client is given


def test_a_subclass_of_an_asynchronous_client_is_kept() -> None:
    class AsyncTraced(openai.AsyncOpenAI): ...

    class Traced(openai.AsyncOpenAI): ...

    for sdk in (AsyncTraced, Traced):
        sdk.__module__ = "openai.traced"
        given = sdk(api_key="k")
        assert resolve_client(given).client is given  # type: ignore[attr-defined]


@pytest.mark.parametrize("sdk", [openai.OpenAI, anthropic.Anthropic])
def test_a_synchronous_one_is_replaced_by_one_with_the_same_settings(sdk: Any) -> None:
    settings: dict[str, Any] = {
        **{"api_key": "k", "base_url": "http://a.example/x/", "timeout": 7.0, "max_retries": 0},
        **{"default_headers": {"X-A": "1"}, "default_query": {"q": "0"}},
        **({"organization": "org", "project": "proj"} if sdk is openai.OpenAI else {}),
    }
    client: Any = resolve_client(sdk(**settings)).client  # type: ignore[attr-defined]
    assert type(client).__name__ == f"Async{sdk.__name__}"
    assert (client.api_key, str(client.base_url), client.timeout, client.max_retries) == ("k", "http://a.example/x/", 7.0, 0)
    assert (client._custom_headers, client._custom_query) == ({"X-A": "1"}, {"q": "0"})
    if sdk is openai.OpenAI:
        assert (client.organization, client.project) == ("org", "proj")


def test_endpoints_that_take_turns_know_of_one_another() -> None:
    urls = ["http://a.example/v1", "http://b.example/v1"]
    one, other = resolve_endpoints(config(endpoint_configs=[config(api_base_url=url) for url in urls]))
    assert [client.config.api_base_url for client in (one, other)] == urls  # type: ignore[attr-defined]
    assert one.answered_by == other.answered_by
    assert all(url in one.answered_by for url in urls)
    [alone] = resolve_endpoints(config())
    assert alone.taking_turns == ""  # type: ignore[attr-defined]
