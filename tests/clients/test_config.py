"""Configurations, and which client they and SDK clients resolve to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import ValidationError

from vfgym.clients import ClientConfig, EndpointClientConfig, resolve_client
from vfgym.clients.config import NO_KEY, PROVIDERS
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.clients.scripted import ScriptedClient
from vfgym.errors import UnknownArgument


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("PRIME_API_KEY", "PRIME_TEAM_ID", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


def test_documented_defaults() -> None:
    config = ClientConfig()
    documented = {
        "client_idx": 0,
        "client_type": "openai_chat_completions",
        "preserve_all_thinking": False,
        "preserve_thinking_between_tool_calls": False,
        "api_key_var": "PRIME_API_KEY",
        "api_base_url": "https://api.pinference.ai/api/v1",
        "endpoint_configs": [],
        "timeout": 3600.0,
        "connect_timeout": 5.0,
        "max_connections": 28000,
        "max_keepalive_connections": 28000,
        "max_retries": 10,
        "extra_headers": {},
        "extra_headers_from_state": {},
    }
    assert {name: getattr(config, name) for name in documented} == documented
    endpoint = EndpointClientConfig()
    of_endpoints = {name: documented[name] for name in ("client_idx", "api_key_var", "api_base_url", "timeout", "max_connections")}
    of_endpoints |= {name: documented[name] for name in ("max_keepalive_connections", "max_retries", "extra_headers")}
    assert {name: getattr(endpoint, name) for name in of_endpoints} == of_endpoints


def test_keys_and_teams(monkeypatch: pytest.MonkeyPatch, bare_environment: Path) -> None:
    config = ClientConfig()
    assert (config.resolve_api_key(), config.resolve_headers()) == (NO_KEY, {})
    (bare_environment / ".prime").mkdir()
    (bare_environment / ".prime" / "config.json").write_text(json.dumps({"api_key": "filed", "team_id": "t1"}))
    assert (config.resolve_api_key(), config.resolve_headers()) == ("filed", {"X-Prime-Team-ID": "t1"})
    monkeypatch.setenv("PRIME_API_KEY", "set")
    monkeypatch.setenv("PRIME_TEAM_ID", "t2")
    assert (config.resolve_api_key(), config.resolve_headers()) == ("set", {"X-Prime-Team-ID": "t2"})
    other = ClientConfig(provider="openai", extra_headers={"X": "y"})
    assert (other.resolve_api_key(), other.resolve_headers()) == (NO_KEY, {"X": "y"})
    monkeypatch.setenv("OPENAI_API_KEY", "sk")
    assert other.resolve_api_key() == "sk"
    given = ClientConfig(api_key="given")
    assert given.resolve_api_key() == "given"
    assert "given" not in repr(given) + given.model_dump_json()


@pytest.mark.parametrize(
    "fields",
    [
        {"api_base_url": "localhost:8000/v1"},
        {"api_base_url": "ftp://localhost/v1"},
        {"api_base_url": "http:///v1"},
        {"api_base_url": "http://localhost:99999/v1"},
        {"timeout": 0},
        {"max_connections": 0},
        {"max_retries": -1},
        {"max_body_mb": 0},
        {"max_body_mb": -1},
        {"max_body_mb": float("nan")},
        {"extra_headers": {"": "x"}},
        {"client_type": "openai"},
        {"endpoint_configs": [ClientConfig(endpoint_configs=[EndpointClientConfig()])]},
    ],
)
def test_values_that_do_not_fit(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ClientConfig(**fields)


def test_unknown_fields_and_providers() -> None:
    with pytest.raises(UnknownArgument, match="Did you mean `api_base_url`"):
        ClientConfig(base_url="http://localhost/v1")
    with pytest.raises(ValueError, match="Did you mean `openai`"):
        ClientConfig(provider="opnai")


def test_endpoints_take_what_they_do_not_set() -> None:
    config = ClientConfig(
        api_key_var="KEY",
        max_retries=3,
        client_idx=3,
        endpoint_configs=[{"api_base_url": "http://a/v1"}, EndpointClientConfig(api_base_url="http://b/v1", max_retries=1)],
    )
    a, b = config.endpoints()
    assert [(each.api_base_url, each.api_key_var, each.max_retries) for each in (a, b)] == [
        ("http://a/v1", "KEY", 3),
        ("http://b/v1", "KEY", 1),
    ]
    assert config.single() == b
    assert config.base_urls == "http://a/v1,http://b/v1"


async def test_who_is_asked() -> None:
    scripted = ScriptedClient(["a"])
    assert resolve_client(scripted) is scripted
    chat = resolve_client(ClientConfig(endpoint_configs=[{"api_base_url": "http://a/v1"}]))
    assert type(chat) is OpenAIChatCompletionsClient
    assert chat.config.api_base_url == "http://a/v1"
    given: Any = resolve_client(openai.AsyncOpenAI(api_key="k"))
    assert given.config is None
    await given.close()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_is_short_for_what_its_guide_says_and_what_is_given_beside_it_wins(provider: str) -> None:
    short, known = ClientConfig(provider=provider), PROVIDERS[provider]
    assert (short.api_base_url, short.api_key_var, short.client_type) == (known.url, known.key_var, known.client_type)
    guide = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    assert re.search(rf"^\|.*`{provider}`.*`{known.key_var}`", guide, re.MULTILINE)
    given = {"api_base_url": "http://a/v1", "api_key_var": "MY_KEY", "client_type": "openai_responses"}
    other = ClientConfig(provider=provider, **given)
    assert {name: getattr(other, name) for name in given} == given


def test_the_endpoints_of_plain_data_are_completed_from_the_configuration() -> None:
    config = ClientConfig(
        api_key_var="A",
        max_body_mb=0.5,
        endpoint_configs=[
            {"api_base_url": "http://a", "endpoint_configs": [], "timeout": 9.0},
            ClientConfig(api_base_url="http://b", api_key="k"),
        ],  # type: ignore[list-item]
    )
    each = [(one.api_base_url, one.api_key_var, one.max_body_mb, one.timeout, one.endpoint_configs) for one in config.endpoints()]
    assert each == [("http://a", "A", 0.5, 9.0, []), ("http://b", "A", 0.5, 3600.0, [])]
    assert [one.api_key for one in config.endpoints()] == [None, "k"]
    assert "api_key" not in config.model_dump()
    assert [ClientConfig(**{**config.model_dump(), "client_idx": index}).single().api_base_url for index in range(3)] == [
        *("http://a", "http://b", "http://a")
    ]
