"""The legacy completions client: one text goes out, one comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.clients.canned_server import Canned, CannedServer
from vfgym.clients import Client, ClientConfig, resolve_client
from vfgym.errors import EmptyModelResponseError, InvalidModelResponseError, ModelError, OverlongPromptError
from vfgym.messages import AssistantMessage, ResponseTokens, SystemMessage, TextMessage, ToolCall, ToolMessage, Usage, UserMessage
from vfgym.tools import Tool

CHOICE: dict[str, Any] = {"index": 0, "text": " Oslo.", "finish_reason": "stop", "logprobs": None}
ANSWER: dict[str, Any] = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 5,
    "model": "served",
    "choices": [CHOICE],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}


@pytest.fixture
def server(server: CannedServer) -> CannedServer:
    server.answers = [ANSWER]
    return server


@pytest.fixture
async def client(server: CannedServer) -> AsyncIterator[Client]:
    made = resolve_client(
        ClientConfig(
            client_type="openai_completions",
            api_base_url=server.url,
            api_key="secret",
            max_retries=0,
            extra_headers_from_state={"X-Session-ID": "example_id"},
        )
    )
    yield made
    await made.close()


async def test_texts_are_joined_by_blank_lines(client: Client, server: CannedServer) -> None:
    conversation = [
        SystemMessage("Be kind."),
        UserMessage([{"type": "text", "text": "Grüße,"}, {"type": "text", "text": "Ann"}]),
        AssistantMessage("Hm.", tool_calls=[ToolCall("c1", "add", "{}")], reasoning_content="secret"),
        AssistantMessage(None, tool_calls=[ToolCall("c1", "add", "{}")]),
        ToolMessage("2", tool_call_id="c1"),
        TextMessage("Once"),
    ]
    response = await client.get_response(conversation, "m")
    assert server.bodies == [{"model": "m", "prompt": "Be kind.\n\nGrüße, Ann\n\nHm.\n\n2\n\nOnce"}]
    assert server.paths == ["/v1/completions"]
    assert dict(response.message) == {"role": "assistant", "content": " Oslo.", "finish_reason": "stop", "is_truncated": False}
    assert (response.id, response.created, response.model, response.usage) == ("cmpl-1", 5, "served", Usage(7, 0, 3, 10))


async def test_arguments(client: Client, server: CannedServer) -> None:
    arguments = {"max_tokens": 5, "top_p": None, "top_k": 3, "extra_body": {"min_p": 0.1}, "extra_headers": {"X-Run": "7"}}
    await client.get_response([TextMessage("Once")], "m", arguments, state={"example_id": 9})
    assert server.bodies == [{"model": "m", "prompt": "Once", "max_tokens": 5, "top_k": 3, "min_p": 0.1}]
    assert (server.headers[0]["X-Session-ID"], server.headers[0]["X-Run"]) == ("9", "7")


@pytest.mark.parametrize("part", [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "input_audio", "input_audio": {}}])
async def test_only_text_can_be_sent(client: Client, server: CannedServer, part: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=part["type"]) as caught:
        await client.get_response([UserMessage([part])], "m")
    assert isinstance(caught.value.__cause__, ValueError)
    assert server.bodies == []


async def test_no_tools_and_no_stream(client: Client, server: CannedServer) -> None:
    tool = Tool(name="add", description="", parameters={"type": "object"})
    for given in ({"tools": [tool]}, {"sampling_args": {"stream": True}}):
        with pytest.raises(ModelError, match=r"no tools|does not stream") as caught:
            await client.get_response([TextMessage("Once")], "m", **given)  # type: ignore[arg-type]
        assert isinstance(caught.value.__cause__, ValueError)
    assert server.bodies == []


async def test_token_data_and_truncation(client: Client, server: CannedServer) -> None:
    choice = {
        **CHOICE,
        "prompt_token_ids": [1],
        "token_ids": [2, 3],
        "logprobs": {"token_logprobs": [-0.5, -1.0]},
        "finish_reason": "length",
    }
    server.answers = [{**ANSWER, "choices": [choice]}]
    response = await client.get_response([TextMessage("Once")], "m")
    assert response.tokens == ResponseTokens([1], [0], [2, 3], [1, 1], [-0.5, -1.0])
    assert response.is_truncated


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({**ANSWER, "choices": []}, EmptyModelResponseError),
        ({**ANSWER, "choices": [{**CHOICE, "text": ""}]}, EmptyModelResponseError),
        ({**ANSWER, "choices": [CHOICE, CHOICE]}, InvalidModelResponseError),
        (Canned({"error": {"message": "maximum context length"}}, 400), OverlongPromptError),
        (Canned({"error": {"message": "no"}}, 400), ModelError),
    ],
)
async def test_answers_that_cannot_be_used(client: Client, server: CannedServer, answer: Any, error: type[Exception]) -> None:
    server.answers = [answer]
    with pytest.raises(error) as caught:
        await client.get_response([TextMessage("Once")], "m")
    assert type(caught.value) is error
