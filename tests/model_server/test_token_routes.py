"""The routes that tokenize, and those that are asked with tokens."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model_server.asked import CALLS, CHAT_TOOL, HELLO, post, says
from vfgym.model_server import ModelRequest, ModelServer


async def test_prompt_and_answer_are_the_rendering_of_the_longer_conversation(server: ModelServer) -> None:
    tools = [CHAT_TOOL]
    asks = {"model": "full", "messages": HELLO, "tools": tools, "return_token_ids": True}
    _, answer = await post(server, "/v1/chat/completions", asks)
    choice = answer["choices"][0]
    longer = [*HELLO, choice["message"]]
    _, rendered = await post(server, "/v1/tokenize", {"model": "full", "messages": longer, "tools": tools, "add_generation_prompt": False})
    assert rendered["tokens"] == answer["prompt_token_ids"] + choice["token_ids"]
    assert rendered["count"] == answer["usage"]["total_tokens"]
    longest = [*longer, *({"role": "tool", "tool_call_id": call.id, "content": "3"} for call in CALLS)]
    _, further = await post(server, "/tokenize", {"model": "full", "messages": longest, "tools": tools})
    assert further["tokens"][: rendered["count"]] == rendered["tokens"]
    _, again = await post(server, "/v1/chat/completions/tokens", {"model": "full", "tokens": further["tokens"], "return_token_ids": True})
    assert again["prompt_token_ids"] == further["tokens"]


async def test_the_token_route_shows_the_policy_what_the_tokens_say() -> None:
    asked: list[ModelRequest] = []

    def policy(request: ModelRequest) -> str:
        asked.append(request)
        return "7"

    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "see:"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]},
        {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [dict(call) for call in CALLS]},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "tool", "tool_call_id": "c2", "content": "7"},
    ]
    async with ModelServer({"m": policy}) as server:
        _, rendered = await post(server, "/tokenize", {"model": "m", "messages": messages, "tools": [CHAT_TOOL]})
        status, answer = await post(server, "/v1/chat/completions/tokens", {"model": "m", "tokens": rendered["tokens"], "seed": 3})
        assert (status, says(answer)) == (200, "7")
        assert answer["usage"]["prompt_tokens"] == rendered["count"]
        (request,) = asked
        assert (request.api, request.model, request.sampling_args) == ("tokens", "m", {"seed": 3})
        assert [tool.to_openai() for tool in request.tools] == [CHAT_TOOL]
        assert [message["role"] for message in request.messages] == [message["role"] for message in messages]
        assert [message["content"] for message in request.messages] == [message["content"] for message in messages]
        assert request.messages[2].reasoning_content == "hm"
        assert [call.arguments for call in request.messages[2].tool_calls] == [call.arguments for call in CALLS]
        assert [call.id for call in request.messages[2].tool_calls] == [message.tool_call_id for message in request.messages[3:]]


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        ([], "at least one"),
        ([258, 104, 105, 259], "<|end|> is missing"),
        ([258, 104, 105], "begins no message"),
        ([258, 104, 105, 262], "beginning of an assistant message"),
        ([262, 258], "ends a message that has not begun"),
        ([258, 9999, 262, 259], "a token id is an integer"),
        ([258, True, 262, 259], "a token id is an integer"),
        ([269, 123, 262, 259], "tokens"),
    ],
)
async def test_tokens_that_make_no_prompt_are_refused(server: ModelServer, tokens: list[Any], problem: str) -> None:
    status, answer = await post(server, "/v1/chat/completions/tokens", {"model": "echo", "tokens": tokens})
    assert status == 400
    assert problem in answer["error"]["message"]


async def test_plain_text_is_tokenized_and_back(server: ModelServer) -> None:
    _, answer = await post(server, "/tokenize", {"prompt": "é<|end|>", "return_token_strs": True})
    assert answer["tokens"] == list("é<|end|>".encode())
    assert answer["token_strs"][:3] == ["bytes:\\xc3", "bytes:\\xa9", "<"]
    assert (await post(server, "/detokenize", {"tokens": answer["tokens"]}))[1] == {"prompt": "é<|end|>"}
    assert (await post(server, "/tokenize", {}))[0] == 400
    assert (await post(server, "/detokenize", {"tokens": [-1]}))[0] == 400
