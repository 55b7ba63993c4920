"""Headers of a request: what is said for one request wins over what is said for a run, whichever API is asked."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from vfgym.clients import ClientConfig, ClientType, resolve_client
from vfgym.messages import UserMessage
from vfgym.model_server import ModelServer

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


@pytest.mark.parametrize("of_the_state", [{}, {"X-B": "session"}])
@pytest.mark.parametrize("client_type", KINDS)
async def test_a_header_that_a_subclass_adds_to_the_sampling_arguments_is_sent(
    client_type: ClientType, of_the_state: dict[str, str]
) -> None:
    with ModelServer() as server:
        url = server.url if client_type == "anthropic_messages" else server.openai_url
        config = ClientConfig(client_type=client_type, api_base_url=url, api_key="k", extra_headers_from_state=of_the_state)
        base: Any = type(resolve_client(config))

        class Traced(base):  # type: ignore[misc]
            async def get_native_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any) -> Any:
                return await super().get_native_response(
                    prompt, model, {**sampling_args, "extra_headers": {"X-A": "trace"}}, tools, **kwargs
                )

        client = Traced(config)
        await client.get_response([UserMessage("hi")], "echo", {"max_tokens": 5}, state={"session": "state"})
        await client.close()
        headers = server.requests[-1].headers
    assert (headers.get("X-A"), headers.get("X-B")) == ("trace", "state" if of_the_state else None)
