"""The client of one provider: which headers a request has, who answers, copies, and what is closed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, get_args

import openai
import pytest

from tests.clients.canned_server import CannedServer
from vfgym.clients import ClientConfig, ClientType, resolve_client
from vfgym.clients.asking import count_sending
from vfgym.clients.faults import ASKED_BY_PROGRAM
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.errors import ConfigurationError, ModelError
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


HELLO = [UserMessage("hello")]
NO_KEY = "EMPTY"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda client: pickle.loads(pickle.dumps(client))])
async def test_a_copy_opens_connections_of_its_own(server: CannedServer, copied: Callable[[Any], Any]) -> None:
    client = OpenAIChatCompletionsClient(ClientConfig(api_base_url=server.url, api_key=NO_KEY))
    await client.get_response(HELLO, "m")
    twin = copied(client)
    await client.close()
    assert (await twin.get_response(HELLO, "m")).message.content == "Oslo."
    assert len(server.peers) == 2
    await twin.close()


async def test_the_sdks_client_is_made_once_and_closed(server: CannedServer) -> None:
    client = OpenAIChatCompletionsClient(ClientConfig(api_base_url=server.url, api_key="k", timeout=7, connect_timeout=3, max_retries=2))
    sdk = client.client
    assert client.client is sdk
    assert (sdk.api_key, str(sdk.base_url)) == ("k", f"{server.url}/")
    assert sdk.max_retries == 0  # the transport sends a request again
    assert (sdk.timeout.read, sdk.timeout.connect) == (7, 3)  # type: ignore[union-attr]
    await client.close()
    assert sdk.is_closed()


async def test_a_client_of_an_sdk_has_no_connections_of_its_own() -> None:
    client = OpenAIChatCompletionsClient(openai.AsyncOpenAI(api_key="k"))
    with pytest.raises(ConfigurationError, match="SDK's client"):
        _ = client.connections
    await client.close()


@pytest.mark.parametrize("given", [openai.AsyncOpenAI(api_key="k"), ClientConfig(api_base_url="http://a.example", api_key="k")], ids=type)
async def test_what_an_sdks_client_sends_is_counted(given: Any) -> None:
    client = OpenAIChatCompletionsClient(given)
    assert client.client._client.event_hooks["request"] == [count_sending]
    await client.close()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_one_that_was_given_an_sdks_client_shares_it(copied: Any) -> None:
    sdk = openai.AsyncOpenAI(api_key="k")
    assert copied(OpenAIChatCompletionsClient(sdk)).client is sdk


def test_a_pickle_has_no_sdks_client() -> None:
    client = pickle.loads(pickle.dumps(OpenAIChatCompletionsClient(openai.AsyncOpenAI(api_key="sesame"))))
    with pytest.raises(ConfigurationError, match="pickles hold no keys"):
        _ = client.client
    assert b"sesame" not in pickle.dumps(client)


def test_who_answers_is_the_class_and_the_server() -> None:
    name = f"{OpenAIChatCompletionsClient.__module__}.OpenAIChatCompletionsClient"
    made = OpenAIChatCompletionsClient(ClientConfig(api_base_url="http://user:sesame@a.example/v1/", api_key="k"))
    given = OpenAIChatCompletionsClient(openai.AsyncOpenAI(api_key="k", base_url="http://b.example/v1/"))
    assert given.answered_by == f"{name} http://b.example/v1"
    assert made.answered_by.startswith(name)
    assert "a.example" in made.answered_by
    assert "sesame" not in made.answered_by


@pytest.mark.parametrize("state", [None, {}, {"n": None}, {"n": 0}, {"n": ""}])
def test_headers_from_the_state(state: Any) -> None:
    client = OpenAIChatCompletionsClient(ClientConfig(api_base_url="http://a.example", api_key="k", extra_headers_from_state={"X-N": "n"}))
    number = (state or {}).get("n")
    assert client.state_headers(state) == ({} if number is None else {"X-N": str(number)})


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_what_a_program_asks_for_in_vain_ends_only_its_rollout(status: int, server: CannedServer) -> None:
    """A key that is refused ends the run, whoever asks; what else is refused is the program's own doing."""
    server.answers = [(status, {"error": {"message": "no such model", "code": "model_not_found"}})]
    client = resolve_client(ClientConfig(api_base_url=server.url, api_key="k"))
    with pytest.raises(openai.AuthenticationError if status == 401 else ModelError):
        await client.get_response(HELLO, "m", state={ASKED_BY_PROGRAM: True})
    with pytest.raises(openai.APIStatusError):
        await client.get_response(HELLO, "m", state={ASKED_BY_PROGRAM: False})
    await client.close()
