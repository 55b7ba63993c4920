"""How a request is answered: what a policy sees and may answer, and what else is asked."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import threading
from collections.abc import Iterator
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_server.asked import BODIES, CHAT_TOOL, HELLO, MODELS, PATHS, post, says
from vfgym import AssistantMessage, UserMessage, blocking
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelRequest, ModelServer, Policy, Reply, RequestRefused, echo


async def test_a_policy_sees_what_was_asked() -> None:
    asked: list[ModelRequest] = []

    async def policy(request: ModelRequest) -> AssistantMessage:
        asked.append(request)
        return AssistantMessage("hi", reasoning_content="hm")

    async with (
        ModelServer({"m": policy}) as server,
        openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", default_headers={"X-Episode": "7"}) as gpt,
    ):
        await gpt.chat.completions.create(model="m", messages=HELLO, tools=[CHAT_TOOL], temperature=0.5, tool_choice="required")
    (request,) = asked
    assert (request.api, request.model, request.number, request.tool_choice) == ("chat", "m", 1, "required")
    assert request.messages == [UserMessage("héllo 😀")]
    assert [tool.name for tool in request.tools] == ["add"]
    assert request.sampling_args == {"temperature": 0.5, "tool_choice": "required"}
    assert request.headers["x-episode"] == "7"


@pytest.mark.parametrize("answer", ["hi", {"content": "hi"}, {"role": "assistant", "content": "hi"}, AssistantMessage("hi"), Reply("hi")])
async def test_every_kind_of_answer_is_taken(answer: Any) -> None:
    async with ModelServer({"m": lambda request: answer}) as server:
        _, body = await post(server, "/v1/chat/completions", {"model": "m", "messages": HELLO})
        assert body["choices"][0]["message"]["content"] == "hi"


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (lambda request: 3, "a policy must return text"),
        (lambda request: {"role": "user", "content": "x"}, "a policy must return text"),
        (lambda request: 1 / 0, "ZeroDivisionError"),
        (lambda request: Reply("abc", logprobs=[-1.0]), "one log-probability for each of its 4 tokens, got 1"),
    ],
)
async def test_a_broken_policy_is_named_and_not_tried_again(policy: Policy, problem: str) -> None:
    async with ModelServer({"m": policy}) as server:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=3) as gpt:
            with pytest.raises(openai.InternalServerError) as error:
                await gpt.chat.completions.create(model="m", messages=HELLO, logprobs=True)
        assert problem in str(error.value)
        assert server.num_requests == 1


async def test_a_policy_may_refuse() -> None:
    def policy(request: ModelRequest) -> str:
        raise RequestRefused(422, "not that", code="nope", param="messages", headers={"X-Why": "because"})

    async with ModelServer({"m": policy}) as server:
        status, answer = await post(server, "/v1/chat/completions", {"model": "m", "messages": HELLO})
        assert (status, answer["error"]) == (
            422,
            {"message": "not that", "type": "invalid_request_error", "param": "messages", "code": "nope"},
        )


async def test_a_blocking_policy_runs_beside_the_loop() -> None:
    threads: list[int] = []

    @blocking
    def policy(request: ModelRequest) -> str:
        threads.append(threading.get_ident())
        return "hi"

    async with ModelServer({"m": policy}) as server:
        assert (await post(server, "/v1/chat/completions", {"model": "m", "messages": HELLO}))[0] == 200
    assert threads != [threading.get_ident()]


async def test_the_work_ends_when_the_client_goes_away() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def policy(request: ModelRequest) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with ModelServer({"m": policy}) as server:
        task = asyncio.create_task(post(server, "/v1/chat/completions", {"model": "m", "messages": HELLO}))
        await begun.wait()
        task.cancel()
        await ended.wait()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_wrong_paths_and_methods_are_explained(server: ModelServer) -> None:
    status, answer = await post(server, "/v1/chat/completion", {})
    assert status == 404
    assert "Did you mean `/v1/chat/completions`" in answer["error"]["message"]
    assert (await post(server, "/health", {}))[0] == 405
    async with aiohttp.ClientSession() as session, session.get(server.openai_url + "/responses") as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")


async def test_latency_lets_others_in_and_big_conversations_are_taken() -> None:
    async with ModelServer(latency=0.001) as server:
        text = "é" * 1_000_000
        status, answer = await post(server, "/v1/chat/completions", {"model": "echo", "messages": [{"role": "user", "content": text}]})
        assert (status, says(answer)) == (200, text)


async def fetch(server: ModelServer, path: str, **headers: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(server.url + path, headers=headers) as response:
        return response.status, await response.json()


async def test_what_there_is_is_told(server: ModelServer) -> None:
    models = [{"id": name, "object": "model", "created": 0, "owned_by": "vfgym"} for name in server.models]
    assert await fetch(server, "/v1/models") == (200, {"object": "list", "data": models})
    assert await fetch(server, "/health/") == (200, {"status": "ok"})
    async with ModelServer(max_model_len=7) as short:
        assert {model["max_model_len"] for model in (await fetch(short, "/v1/models"))[1]["data"]} == {7}
    status, answer = await post(server, "/v1/chat/completions", {"model": "ecko", "messages": HELLO})
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (404, "model_not_found", "model")
    assert answer["error"]["message"] == f"the model 'ecko' does not exist; there are {', '.join(server.models)}. Did you mean `echo`?"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer right"}, 200),
        ({"Authorization": "bearer  right "}, 200),
        ({"Authorization": "Bearer other"}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic right"}, 401),
        ({"Authorization": "right"}, 401),
        ({"Authorization": "Bearer banned"}, 403),
        ({"x-api-key": "right"}, 401),
    ],
    ids=str,
)
async def test_a_key_is_asked_for_where_some_are_known(headers: dict[str, str], status: int) -> None:
    async with ModelServer(api_keys={"right", "other", "banned"}, forbidden_keys={"banned"}) as server:
        assert (await fetch(server, "/v1/models", **headers))[0] == status
        assert (await fetch(server, "/health"))[0] == 200, "health needs no key"
        server.behaviour.api_keys = None
        assert (await fetch(server, "/v1/models", **headers))[0] == (403 if status == 403 else 200)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-api-key": "right"}, 200),
        ({"x-api-key": "banned"}, 403),
        ({"Authorization": "Bearer right"}, 200),
        ({"x-api-key": "wrong", "Authorization": "Bearer right"}, 401),
        ({}, 401),
    ],
    ids=str,
)
async def test_the_api_of_anthropic_has_a_header_of_its_own_for_keys(headers: dict[str, str], status: int) -> None:
    async with ModelServer(api_keys=["right", "banned"], forbidden_keys=["banned"]) as server:
        assert (await post(server, "/v1/messages", BODIES["/v1/messages"], **headers))[0] == status
        for path in ("/v1/models", "/v1/models/"):
            assert (await fetch(server, path, **headers, **{"anthropic-version": "2023-06-01"}))[0] == status


async def test_a_client_of_anthropic_lists_the_models_with_its_key() -> None:
    async with ModelServer({"b": echo, "a": echo}, api_keys=["right"]) as server:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="right", max_retries=0) as claude:
            assert [model.id for model in (await claude.models.list()).data] == ["b", "a"]
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="wrong", max_retries=0) as claude:
            with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key") as raised:
                await claude.models.list()
        assert raised.value.request_id == "req_2"


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ({"faults": "cut"}, "faults must be a Faults, a function of the request, or None, got str"),
        ({"latency": -0.1}, "latency must be seconds from 0, got -0.1"),
        ({"latency": math.inf}, "latency must be seconds from 0, got inf"),
        ({"latency": math.nan}, "latency must be seconds from 0, got nan"),
        ({"latency": "1"}, "latency must be seconds from 0, got '1'"),
        ({"max_model_len": 0}, "max_model_len must be a number of tokens from 1, or None, got 0"),
        ({"max_model_len": 1.5}, "max_model_len must be a number of tokens from 1, or None, got 1.5"),
        ({"api_keys": "k"}, "api_keys must be a set of keys, got the text 'k': write {'k'}"),
        ({"forbidden_keys": "k"}, "forbidden_keys must be a set of keys, got the text 'k': write {'k'}"),
    ],
    ids=str,
)
def test_an_argument_that_does_not_fit_is_refused(argument: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        ModelServer(**argument)
    assert str(raised.value) == says


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.text(max_size=3) | st.sampled_from(["user", "tool", "assistant", "function"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "id", "name", "tool_calls", "function", "input"]), inner)
    ),
    max_leaves=6,
)

FIELDS = (
    *("messages", "prompt", "input", "tokens", "tools", "tool_choice", "n", "stop", "stop_sequences", "system", "stream"),
    *("stream_options", "max_tokens", "logprobs", "top_logprobs", "instructions", "reasoning", "text", "metadata", "seed", "temperature"),
)


@pytest.fixture(scope="module")
def thread_server() -> Iterator[ModelServer]:
    with ModelServer(MODELS) as server:
        yield server


@pytest.fixture(scope="module")
def connection(thread_server: ModelServer) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(thread_server.url.removeprefix("http://"))
    yield connection
    connection.close()


@settings(max_examples=150)
@given(
    path=st.sampled_from(PATHS), is_stream=st.booleans(), changes=st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1, max_size=3)
)
def test_no_body_brings_the_server_down(
    connection: http.client.HTTPConnection, path: str, is_stream: bool, changes: dict[str, Any]
) -> None:
    body = json.dumps({**BODIES[path], "stream": is_stream, **changes})
    connection.request("POST", path, body, {"anthropic-version": "1"})
    response = connection.getresponse()
    text = response.read()
    assert response.status in (200, 400), (body, text)
