"""SDK clients of a configuration, over real HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.types import ClientConfig, EndpointClientConfig
from verifiers_compat.utils.client_utils import (
    load_prime_config,
    resolve_client_config,
    resolve_client_configs,
    setup_anthropic_client,
    setup_http_client,
    setup_openai_client,
)
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


def test_prime_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
            session = http._transport.connections.pool().session
            await http.aclose()
            assert session.closed
            await openai.close()
            await anthropic.close()

        first = asyncio.run(ask())
        assert all(first)
        asyncio.run(ask_and_close())
        assert {name.lower(): value for name, value in server.requests[0].headers.items()}["x-team"] == "blue"


async def test_clients_have_all_that_the_configuration_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    numbers = {"timeout": 5.0, "connect_timeout": 6.0, "max_retries": 7}
    config = ClientConfig(api_base_url="http://127.0.0.1:1/v1", api_key_var="MY_KEY", extra_headers=HEADERS, **numbers)
    for setup in (setup_openai_client, setup_anthropic_client):
        client = setup(config)
        assert (str(client.base_url), client.api_key, client.max_retries) == ("http://127.0.0.1:1/v1/", "secret", 7)
        assert (client.timeout.read, client.timeout.connect) == (5.0, 6.0)
        assert client.default_headers["X-Team"] == "blue"
        await client.close()
    http = setup_http_client(config)
    assert (http.timeout.read, http.timeout.connect, http.headers["X-Team"], http.follow_redirects) == (5.0, 6.0, "blue", True)
    await http.aclose()
