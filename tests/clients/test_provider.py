"""The client of one provider: which headers a request has, who answers, copies, and what is closed."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_args

import openai
import pytest

from tests.clients.canned_server import CannedServer
from vfgym.clients import ClientConfig, ClientType, resolve_client
from vfgym.clients.asking import count_sending
from vfgym.clients.faults import ASKED_BY_PROGRAM
from vfgym.clients.provider import ProviderClient
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.errors import ConfigurationError, EmptyModelResponseError, Error, InfraError, ModelError, OverlongPromptError
from vfgym.messages import Response, ResponseMessage, UserMessage
from vfgym.model_server import ModelServer
from vfgym.output.redaction import Secret, redact
from vfgym.tools import Tool

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


# What is asked, and what becomes of the answer


class Plain(ProviderClient[Any, Any, Any, Any]):
    """Asks nobody: `answer` is what comes back, or is raised."""

    answer: Any = "Oslo."
    model = "m"

    def __init__(self, config: Any = None) -> None:
        super().__init__(config or ClientConfig(api_base_url="http://user:sesame@a.example/v1", api_key="k"))
        self.asked: list[Any] = []

    def setup_client(self, config: Any) -> Any:
        return SimpleNamespace(api_key=config.api_key, is_closed=False)

    async def to_native_prompt(self, messages: Any) -> Any:
        return [message["content"] for message in messages], {"first": 1, "second": 1}

    async def to_native_tool(self, tool: Any) -> Any:
        return tool.name

    async def get_native_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any) -> Any:
        self.asked.append((prompt, model, sampling_args, tools, kwargs))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def raise_from_native_response(self, response: Any) -> None:
        if not response:
            raise EmptyModelResponseError("nothing")

    async def from_native_response(self, response: Any) -> Response:
        return Response(
            response, 0, response, None, ResponseMessage(response, reasoning_content=response, finish_reason="stop", is_truncated=False)
        )


TOOLS = [Tool(name=name, description="", parameters={"type": "object", "properties": {}}) for name in ("f", "g")]


@pytest.mark.parametrize(("tools", "native"), [(None, None), ([], None), (TOOLS[:1], ["f"]), (TOOLS, ["f", "g"])])
async def test_all_that_is_asked_arrives(tools: Any, native: Any) -> None:
    client = Plain()
    await client.get_response(HELLO, "m", None, tools)
    await client.get_response(
        [*HELLO, UserMessage("!")], "n", {"seed": 0, "extra_headers": None}, tools, state={}, second=2, extra_headers={}
    )
    assert client.asked == [
        (["hello"], "m", {}, native, {"first": 1, "second": 1}),
        (["hello", "!"], "n", {"seed": 0, "extra_headers": None}, native, {"first": 1, "second": 2, "state": {}}),
    ]
    assert await client.to_native_tools([]) == []


@pytest.mark.parametrize(
    ("sampling_args", "options", "lost"),
    [
        ({"extra_headers": {"X-A": "***", "X-B": "b"}}, {}, "X-A"),
        ({"extra_query": {"q": "***"}, "extra_headers": {"X-A": "***"}}, {}, "X-A, q"),
        ({}, {"extra_headers": {"X-C": "***"}}, "X-C"),
        ({"extra_headers": {"X-A": "***"}}, {"extra_headers": {"X-A": "a"}}, None),
        ({"extra_headers": {}, "extra_query": None}, {}, None),
    ],
)
async def test_what_stands_for_a_secret_is_not_sent(sampling_args: Any, options: Any, lost: str | None) -> None:
    client = Plain()
    message = f"the sampling arguments are without the values of {lost}: pickles hold none. Give them again"
    with contextlib.nullcontext() if lost is None else pytest.raises(ConfigurationError, match=f"^{message}$"):
        await client.get_response(HELLO, "m", sampling_args, **options)
    assert len(client.asked) == (lost is None)


class Told(Exception):
    """An error of an SDK."""

    def __init__(self, status_code: Any = None, body: Any = None, *, headers: Any = None) -> None:
        super().__init__("told")
        self.status_code, self.body = status_code, body
        if headers is not None:
            self.response = SimpleNamespace(headers=headers)


NO_ANSWER = "the provider at http://***@a.example/v1 gave no usable answer: Told: told"


@pytest.mark.parametrize(
    ("error", "kind", "text", "is_outage"),
    [
        (Told(400), ModelError, NO_ANSWER, False),
        (Told(429), ModelError, NO_ANSWER, True),
        (Told(500, ""), ModelError, NO_ANSWER, True),
        (Told(502, "<html>"), ModelError, f"{NO_ANSWER} '<html>'", True),
        (Told(502, "x" * 300), ModelError, f"{NO_ANSWER} '{'x' * 199}", True),
        (Told(400, {"a": "b"}), ModelError, NO_ANSWER, False),
        (Told(None), ModelError, NO_ANSWER, True),
        (Told(400, {"code": "context_length_exceeded"}), OverlongPromptError, "the prompt is longer than the context of m: told", False),
    ],
)
async def test_an_error_becomes_one_of_the_library(error: Exception, kind: type[Error], text: str, is_outage: bool) -> None:
    client = Plain()
    client.answer = error
    with pytest.raises(kind) as caught:
        await client.get_response(HELLO, "m")
    assert (type(caught.value), str(caught.value), caught.value.__cause__) == (kind, text, error)
    assert (caught.value.failure_cause == "infrastructure") is is_outage


async def test_an_error_of_the_library_is_raised_as_it_is_also_where_an_sdk_made_another_of_it() -> None:
    client = Plain()
    own, cause = InfraError("own"), OSError("cause")
    own.__cause__ = cause
    between = RuntimeError("between")
    between.__cause__ = own
    wrapped = ConnectionError("sdk")
    wrapped.__cause__ = between
    for error in (own, wrapped):
        client.answer = error
        with pytest.raises(InfraError) as caught:
            await client.get_response(HELLO, "m")
        assert caught.value is own
        assert own.__cause__ is cause
    client.answer = ""
    with pytest.raises(EmptyModelResponseError, match="nothing"):
        await client.get_response(HELLO, "m")
    for ends in (asyncio.CancelledError("stop"), KeyboardInterrupt("stop")):
        client.answer = ends
        with pytest.raises(type(ends)) as interrupted:
            await client.get_response(HELLO, "m")
        assert interrupted.value is ends


async def test_keys_are_taken_out_of_all_of_an_answer() -> None:
    Secret("key-0123456789abcdef")
    client = Plain()
    client.answer = "it is key-0123456789abcdef"
    response = await client.get_response(HELLO, "m")
    message = response.message
    assert {response.id, response.model, message.content, message.reasoning_content} == {"it is ***"}
    assert (type(message), message.finish_reason, message.is_truncated) == (ResponseMessage, "stop", False)


async def test_a_client_is_closed_once_and_is_made_again_where_it_was_made_of_a_configuration() -> None:
    closed: list[Any] = []

    class Sdk(SimpleNamespace):
        async def close(self) -> None:
            closed.append(self)

    made = Plain()
    await made.close()
    assert closed == []
    made.setup_client = lambda config: Sdk(number=len(closed))  # type: ignore[method-assign]
    first = made.client
    for _ in range(2):
        await made.close()
    assert closed == [first]
    assert made.client is not first
    given = Sdk(api_key=None)
    client = Plain(given)
    await client.close()
    assert (closed[-1], client.client) == (given, given)


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({"api_key": "secret-of-a-test-1"}, "secret-of-a-test-1"),
        ({"auth_token": "secret-of-a-test-2"}, "secret-of-a-test-2"),
        ({"_custom_headers": {"X-Title": "secret-of-a-test-3"}}, "secret-of-a-test-3"),
        ({"_custom_query": {"v": "secret-of-a-test-4"}}, "secret-of-a-test-4"),
        ({"base_url": "http://ann:secret-of-a-test-5@a.example"}, "secret-of-a-test-5"),
    ],
)
def test_the_secrets_of_an_sdks_client_are_known(fields: dict[str, Any], secret: str) -> None:
    assert redact(secret) == secret
    Plain(SimpleNamespace(**fields))
    assert redact(secret) == "***"


async def test_the_secrets_of_a_request_that_failed_are_known() -> None:
    client = Plain()
    client.answer = Told(400)
    arguments = {"extra_headers": {"X-Title": "failed-request-1"}, "extra_query": {"v": "failed-request-2"}}
    with pytest.raises(ModelError):
        await client.get_response(HELLO, "m", arguments, extra_headers={"X-B": "failed-request-3"})
    assert [redact(f"failed-request-{number}") for number in (1, 2, 3)] == ["***"] * 3


def test_an_unusable_usage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    client = Plain()
    for model, field in ((None, "prompt_tokens"), ("m", "completion_tokens")):
        client._tell_unusable(model)(field, -1)
    (message,) = caplog.messages
    assert message.startswith("the provider at http://***@a.example/v1 tells prompt_tokens = -1 of an answer of its model, ")
    Plain(SimpleNamespace())._tell_unusable("m")("total", 0.5)
    assert caplog.messages[1].startswith("the provider tells total = 0.5 of an answer of m, ")
