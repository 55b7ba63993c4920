"""The chat completions client: what it sends for each kind of message, tool and argument, and what it makes of each answer.

Every expectation holds for all the ways to the server: without the SDK, through it, and through an SDK's client that was given.
"""

from __future__ import annotations

import gc
import json
import logging
import weakref
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from tests.clients.canned_server import Canned, CannedServer
from vfgym.clients import Client, ClientConfig, resolve_client
from vfgym.clients.formats import openai_chat as chat_format
from vfgym.clients.providers import openai_chat_completions
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.errors import InvalidModelResponseError, ModelError, OverlongPromptError
from vfgym.messages import AssistantMessage, Usage, UserMessage
from vfgym.tools import Tool

HELLO = [UserMessage("hello")]
ADD = Tool(name="add", description="Add.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


class WithAConversion(OpenAIChatCompletionsClient):
    """Has a conversion of its own, so it is asked through the SDK."""

    async def to_native_tool(self, tool: Tool) -> dict[str, Any]:
        return dict(await super().to_native_tool(tool))


@pytest.fixture(params=["lean", "subclass", "given"])
async def client(request: pytest.FixtureRequest, server: CannedServer) -> AsyncIterator[Client]:
    config = ClientConfig(api_base_url=server.url, api_key="secret", max_retries=0)
    made: Client
    if request.param == "lean":
        made = resolve_client(config)
    elif request.param == "subclass":
        made = WithAConversion(config)
    else:
        made = resolve_client(openai.AsyncOpenAI(api_key="secret", base_url=server.url, max_retries=0))
    yield made
    await made.close()


async def test_plain_dicts_and_text_are_messages_too(client: Client, server: CannedServer) -> None:
    await client.get_response([{"role": "user", "content": "hi"}], "m")  # type: ignore[list-item]
    await client.get_response("hi", "m")  # type: ignore[arg-type]
    assert server.bodies[0] == server.bodies[1] == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def test_audio_asks_for_nothing_of_its_own(client: Client, server: CannedServer) -> None:
    """Models answer in text by default, and not every server knows the parameter. What is asked for is sent."""
    await client.get_response([UserMessage([AUDIO])], "m")
    await client.get_response([UserMessage([AUDIO])], "m", {"modalities": ["text", "audio"]})
    assert server.bodies[0] == {"model": "m", "messages": [{"role": "user", "content": [AUDIO]}]}
    assert server.bodies[1]["modalities"] == ["text", "audio"]


async def test_tools(client: Client, server: CannedServer) -> None:
    strict = ADD.model_copy(update={"strict": True})
    await client.get_response(HELLO, "m", tools=[ADD])
    await client.get_response(HELLO, "m", tools=[strict])
    await client.get_response(HELLO, "m", tools=[])
    function = {"name": "add", "description": "Add.", "parameters": ADD.parameters}
    assert server.bodies[0]["tools"] == [{"type": "function", "function": function}]
    assert server.bodies[1]["tools"] == [{"type": "function", "function": {**function, "strict": True}}]
    assert "tools" not in server.bodies[2]


async def test_options_of_the_request(client: Client, server: CannedServer) -> None:
    arguments = {
        "temperature": 0.5,
        "extra_body": {"min_p": 0.1, "temperature": 0.7},
        "extra_headers": {"X-Run": "6", "Authorization": "Bearer other"},
        "extra_query": {"api-version": "2", "dry": True},
        "timeout": 30.0,
    }
    await client.get_response(HELLO, "m", arguments, extra_headers={"X-Run": "7"}, seed=7)
    messages = [{"role": "user", "content": "hello"}]
    assert server.bodies[0] == {"model": "m", "messages": messages, "min_p": 0.1, "temperature": 0.7, "seed": 7}
    assert server.paths == ["/v1/chat/completions?api-version=2&dry=true"]
    assert server.headers[0]["X-Run"] == "7"
    assert server.headers[0].getall("Authorization") == ["Bearer other"]  # type: ignore[attr-defined]
    assert arguments["extra_body"] == {"min_p": 0.1, "temperature": 0.7}


async def test_an_answer_in_pieces_is_put_together(client: Client, server: CannedServer) -> None:
    deltas: list[Any] = [{"content": "Os"}, {"content": "lo", "reasoning_content": "Hm."}]
    chunks = [{"id": "s1", "created": 5, "model": "sm", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({**chunks[0], "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**chunks[0], "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}})
    events = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
    server.answers = [Canned(events, content_type="text/event-stream")]
    response = await client.get_response(HELLO, "m", {"stream": True, "stream_options": {"include_usage": True}})
    assert server.bodies[0]["stream"] is True
    assert (response.id, response.model, response.usage) == ("s1", "sm", Usage(1, 0, 2, 3))
    assert (response.message.content, response.message.reasoning_content, response.message.finish_reason) == ("Oslo", "Hm.", "stop")


@pytest.mark.parametrize(
    ("status", "cause"), [(400, openai.BadRequestError), (429, openai.RateLimitError), (503, openai.InternalServerError)]
)
async def test_status_errors_are_the_sdks_own(client: Client, server: CannedServer, status: int, cause: type[Exception]) -> None:
    """See `test_json_http.py` for all of them, whose fields are those of the SDK."""
    server.answers = [Canned({"error": {"message": "no such thing", "code": "gone"}}, status)]
    with pytest.raises(ModelError, match="no such thing") as caught:
        await client.get_response(HELLO, "m")
    error: Any = caught.value.__cause__
    assert (type(error), error.status_code, error.code) == (cause, status, "gone")


async def test_a_plain_answer(client: Client) -> None:
    response = await client.get_response(HELLO, "m")
    assert (response.id, response.created, response.model) == ("chatcmpl-7", 1700000000, "served-model")
    assert response.usage == Usage(7, 0, 3, 10)
    assert dict(response.message) == {"role": "assistant", "content": "Oslo.", "finish_reason": "stop", "is_truncated": False}
    assert response.tokens is None
    assert not response.is_truncated


@pytest.mark.parametrize(("status", "cause"), [(401, openai.AuthenticationError), (403, openai.PermissionDeniedError)])
async def test_a_refused_key_is_raised_as_it_is(client: Client, server: CannedServer, status: int, cause: type[Exception]) -> None:
    server.answers = [Canned({"error": {"message": "wrong key"}}, status)]
    with pytest.raises(cause, match="wrong key") as caught:
        await client.get_response(HELLO, "m")
    assert "refused the API key" in caught.value.__notes__[0]
    assert "secret" not in "".join(caught.value.__notes__)


async def test_a_page_that_is_no_answer(client: Client, server: CannedServer) -> None:
    server.answers = ["<html>It works!</html>"]
    with pytest.raises(InvalidModelResponseError, match="It works"):
        await client.get_response(HELLO, "m")


async def test_an_overlong_prompt(client: Client, server: CannedServer, caplog: pytest.LogCaptureFixture) -> None:
    server.answers = [Canned({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400)]
    with pytest.raises(OverlongPromptError), caplog.at_level(logging.WARNING):
        await client.get_response(HELLO, "m")
    assert not [record for record in caplog.records if record.name.startswith("vfgym")]


async def test_only_new_messages_are_converted(server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def counting(message: Any) -> dict[str, Any]:
        seen.append(message)
        return chat_format.native_message(message)

    monkeypatch.setattr(openai_chat_completions, "native_message", counting)
    config = ClientConfig(api_base_url=server.url, api_key="k")
    for client in (resolve_client(config), WithAConversion(config)):
        conversation: list[Any] = [UserMessage(f"{type(client).__name__} {turn}") for turn in range(5)]
        seen.clear()
        await client.get_response(conversation, "m")
        assert len(seen) == 5
        conversation = [*conversation, AssistantMessage("so"), UserMessage("go on")]
        await client.get_response(conversation, "m")
        assert seen[5:] == conversation[5:]
        assert [message["content"] for message in server.bodies[-1]["messages"]] == [message.content for message in conversation]
        await client.close()


async def test_the_tools_json_is_made_once_a_list(server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[str] = []
    to_openai = Tool.to_openai

    def counting(tool: Tool) -> dict[str, Any]:
        converted.append(tool.name)
        return to_openai(tool)

    monkeypatch.setattr(Tool, "to_openai", counting)
    client = OpenAIChatCompletionsClient(ClientConfig(api_base_url=server.url, api_key="k"))
    other = ADD.model_copy(update={"name": "other"})
    for tools in ([ADD], [ADD], [ADD, other], [other, ADD], [ADD]):
        await client.get_response(HELLO, "m", tools=tools)
        assert server.bodies[-1]["tools"] == [to_openai(tool) for tool in tools]
    assert converted == ["add", "add", "other", "other", "add"]
    await client.close()


@pytest.mark.usefixtures("young_heap")
async def test_a_tool_list_for_each_rollout_does_not_grow_without_bound(server: CannedServer) -> None:
    client = OpenAIChatCompletionsClient(ClientConfig(api_base_url=server.url, api_key="k"))
    asked = []
    for number in range(100):
        tool = ADD.model_copy(update={"name": f"tool{number}"})
        asked.append(weakref.ref(tool))
        await client.get_response(HELLO, "m", tools=[tool])
        assert server.bodies[-1]["tools"][0]["function"]["name"] == f"tool{number}"
    del tool
    gc.collect()
    assert sum(each() is not None for each in asked) <= 64
    await client.close()


@pytest.mark.parametrize("replaced", ["get_native_response", "from_native_response"])
async def test_a_replaced_step_is_heeded(server: CannedServer, monkeypatch: pytest.MonkeyPatch, replaced: str) -> None:
    client = OpenAIChatCompletionsClient(ClientConfig(api_base_url=server.url, api_key="k"))
    await client.get_response(HELLO, "m")
    own = getattr(client, replaced)
    called = []

    async def instead(*args: Any, **kwargs: Any) -> Any:
        called.append(replaced)
        return await own(*args, **kwargs)

    monkeypatch.setattr(client, replaced, instead)
    assert (await client.get_response(HELLO, "m")).message.content == "Oslo."
    assert called == [replaced]
    await client.close()
