"""Headers of a request: what is said for one request wins over what is said for a run, whichever API is asked."""

from __future__ import annotations

from typing import get_args

import pytest

from vfgym.clients import ClientConfig, ClientType, resolve_client
from vfgym.messages import UserMessage
from vfgym.testing.model_server import ModelServer

KINDS = [kind for kind in get_args(ClientType) if kind != "renderer"]  # it asks a route of its own: see test_renderer.py


@pytest.mark.parametrize("client_type", KINDS)
async def test_the_nearer_header_wins(client_type: ClientType) -> None:
    """From far to near: the configuration, the sampling arguments, the episode's state, the call."""
    with ModelServer() as server:
        client = resolve_client(
            ClientConfig(
                client_type=client_type,
                api_base_url=server.url if client_type == "anthropic_messages" else server.openai_url,
                api_key="k",
                extra_headers={"X-A": "config", "X-B": "config", "X-C": "config", "X-D": "config"},
                extra_headers_from_state={"X-C": "session", "X-D": "session"},
            )
        )
        sampling_args = {"max_tokens": 5, "extra_headers": {"X-B": "sampling", "X-C": "sampling", "X-D": "sampling"}}
        for more in ({"state": {"session": "state"}}, {"state": {"session": "state"}, "extra_headers": {"X-D": "call"}}, {}):
            await client.get_response([UserMessage("hi")], "echo", sampling_args, **more)
        await client.close()
        sent = [[request.headers.get(f"X-{letter}") for letter in "ABCD"] for request in server.requests]
    assert sent == [
        ["config", "sampling", "state", "state"],
        ["config", "sampling", "state", "call"],
        ["config", "sampling", "sampling", "sampling"],
    ]
    assert sampling_args == {"max_tokens": 5, "extra_headers": {"X-B": "sampling", "X-C": "sampling", "X-D": "sampling"}}
