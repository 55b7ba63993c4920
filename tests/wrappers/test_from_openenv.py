"""`from_openenv`: what cannot be played is an error at construction, which says what to do."""

from __future__ import annotations

import socket
from typing import Any

import pytest

import vfgym
from tests.openenv_servers import StandIn, serving
from vfgym.errors import ConfigurationError


def test_an_address_where_nothing_answers_is_an_error_at_construction() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ConfigurationError, match=r"cannot be reached: .* Is the URL right, and does an OpenEnv server run there\?"):
        vfgym.from_openenv(url)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("gone", "closed the connection|broke off"),
        ("garbage", "not a JSON object"),
        ("nonsense", "no schema of actions"),
        ("error", "it broke"),
        ("slow", "did not answer .* in time"),
        ("refused", "answered /schema with the HTTP status 422.*Is the URL right"),  # one that takes the route for an argument
        *(({"action": action}, "no schema of actions") for action in ({"properties": "add"}, {"properties": {"add": 3}}, {"required": 3})),
        ({"action": {"required": [["add"]]}}, "no schema of actions"),
    ],
)
def test_something_that_speaks_another_protocol_is_an_error_at_construction(schema: Any, words: str) -> None:
    with serving(StandIn(faults={"schema": schema})) as server, pytest.raises(ConfigurationError, match=words):
        vfgym.from_openenv(server.url, request_timeout=0.3 if schema == "slow" else 20)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": 8000}, "url must be where the server is"),
        ({"url": "http://localhost:8000?version=2"}, "without a query"),
        ({"contract": "tools"}, "contract must be 'gym' or 'mcp'"),
        ({"request_timeout": 0}, "request_timeout must be a positive number"),
        ({"prompt_renderer": "text"}, "prompt_renderer must be a function"),
        ({"dataset": []}, "takes no 'dataset'"),
        ({"max_turn": 3}, "Did you mean `max_turns`"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], words: str) -> None:
    with serving(StandIn()) as server, pytest.raises(ConfigurationError, match=words):
        vfgym.from_openenv(**{"url": server.url, **arguments})


@pytest.mark.parametrize("url", ["htp://ann:swordfish@localhost:8000", "http://localhost:8000?key=swordfish"])
def test_an_address_that_does_not_fit_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        vfgym.from_openenv(url)
    assert ("***" in str(caught.value), "swordfish" in str(caught.value)) == (True, False)


def test_a_server_without_tools_is_not_played_by_tools() -> None:
    """Where a server has no schema it is played by any JSON object, or as the caller says."""
    with serving(StandIn()) as server:
        server.faults["step"] = {"observation": {"total": 3}}
        with pytest.raises(ConfigurationError, match="asked for its tools and answered without them"):
            vfgym.from_openenv(server.url, contract="mcp")
        server.wait_until_all_ended()
