"""SDK clients of a configuration, over real HTTP, and the small functions for clients of one's own."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from verifiers_compat.clients.openai_chat_completions_client import (
    content_to_text,
    get_usage_field,
    handle_openai_overlong_prompt,
    parse_reasoning_content,
)
from verifiers_compat.types import ClientConfig, EndpointClientConfig
from verifiers_compat.utils.client_utils import (
    load_prime_config,
    resolve_client_config,
    resolve_client_configs,
    setup_anthropic_client,
    setup_http_client,
    setup_openai_client,
)
from vfgym.errors import OverlongPromptError
from vfgym.model_server import ModelServer

HEADERS = {"X-Team": "blue"}
QUESTION: list[Any] = [{"role": "user", "content": "hi"}]


def test_endpoints_are_resolved() -> None:
    config = ClientConfig(
        api_base_url="http://common", client_idx=3, endpoint_configs=[{"api_base_url": "http://a"}, {"api_base_url": "http://b"}]
    )
    assert [each.api_base_url for each in resolve_client_configs(config)] == ["http://a", "http://b"]
    assert resolve_client_config(config).api_base_url == "http://b"
    leaf = EndpointClientConfig(api_base_url="http://a")
    assert resolve_client_configs(leaf) == [leaf]
    assert resolve_client_config(leaf) is leaf


def test_prime_configuration(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_prime_config() == {}


def test_sdk_clients_ask_over_http() -> None:
    """With the configuration's address and headers, on one event loop after the other; closing them leaves nothing open."""
    with ModelServer() as server:
        root = server.url
        config = ClientConfig(api_base_url=f"{root}/v1", api_key="k", extra_headers=HEADERS)
        openai, anthropic, http = setup_openai_client(config), setup_anthropic_client(ClientConfig(api_base_url=root, api_key="k")), None

        async def ask() -> tuple[Any, Any]:
            chat = await openai.chat.completions.create(model="echo", messages=QUESTION)
            message = await anthropic.messages.create(model="echo", messages=QUESTION, max_tokens=50)
            return chat.choices[0].message.content, message.content[0].text  # type: ignore[union-attr]

        async def ask_and_close() -> None:
            nonlocal http
            assert await ask() == first
            http = setup_http_client(config)
            assert (await http.get(f"{root}/v1/models")).status_code == 200
            await http.aclose()
            await openai.close()
            await anthropic.close()

        first = asyncio.run(ask())
        assert all(first)
        asyncio.run(ask_and_close())
        assert {name.lower(): value for name, value in server.requests[0].headers.items()}["x-team"] == "blue"


async def test_an_overlong_prompt_is_told() -> None:
    """Other errors pass as they are."""
    with ModelServer(max_model_len=20) as server:
        client = setup_openai_client(ClientConfig(api_base_url=f"{server.url}/v1", api_key="k"))

        @handle_openai_overlong_prompt
        async def ask(model: str, text: str) -> Any:
            return await client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}])

        assert await ask("echo", "hi")
        with pytest.raises(OverlongPromptError) as caught:
            await ask("echo", "many words " * 100)
        assert type(caught.value.__cause__).__name__ == "BadRequestError"
        with pytest.raises(Exception, match="no-such-model") as other:
            await ask("no-such-model", "hi")
        assert type(other.value).__name__ == "NotFoundError"
        await client.close()


def test_small_readers() -> None:
    for usage in ({"prompt_tokens": 3}, SimpleNamespace(prompt_tokens=3)):
        assert (get_usage_field(usage, "prompt_tokens"), get_usage_field(usage, "missing")) == (3, None)
    assert content_to_text([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]) == "a b"
    assert (content_to_text("a"), content_to_text(None)) == ("a", "")


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ({"reasoning": "a", "reasoning_content": "b"}, "a"),
        ({"reasoning": None, "reasoning_content": "b"}, "b"),
        (SimpleNamespace(reasoning_content="b"), "b"),
        ({"reasoning_details": [{}]}, None),
        ({"content": "x"}, None),
    ],
)
def test_reasoning_under_any_name(message: Any, reasoning: str | None) -> None:
    assert parse_reasoning_content(message) == reasoning
