"""Chat completions, asked by OpenAI's SDK."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.model_server.asked import BODIES, CALLS, CHAT_TOOL, FULL, HELLO, post
from vfgym.messages import Usage
from vfgym.model_server import ModelServer, RequestRefused
from vfgym.model_server.openai_chat import CHAT, TOKENS, alternatives, token_text, usage_fields


async def test_chat_answers_and_counts_tokens(gpt: openai.AsyncOpenAI) -> None:
    answer = await gpt.chat.completions.create(model="echo", messages=HELLO)
    assert (answer.model, answer.object, answer.choices[0].finish_reason) == ("echo", "chat.completion", "stop")
    assert answer.choices[0].message.content == "héllo 😀"
    num_bytes = len("héllo 😀".encode())
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (num_bytes + 3, num_bytes + 1)
    assert answer.usage.total_tokens == 2 * num_bytes + 4


async def test_several_choices_are_asked_for_one_by_one() -> None:
    async with (
        ModelServer({"m": lambda request: f"answer {request.choice}"}) as server,
        openai.AsyncOpenAI(base_url=server.openai_url, api_key="k") as gpt,
    ):
        answer = await gpt.chat.completions.create(model="m", messages=HELLO, n=3)
        assert [choice.message.content for choice in answer.choices] == ["answer 0", "answer 1", "answer 2"]
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (len("héllo 😀".encode()) + 3, 27)
        stream = await gpt.chat.completions.create(model="m", messages=HELLO, n=2, stream=True)
        texts = ["", ""]
        async for chunk in stream:
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        assert texts == ["answer 0", "answer 1"]
        assert server.num_requests == 2


async def test_chat_carries_tool_calls_and_reasoning(gpt: openai.AsyncOpenAI) -> None:
    answer = await gpt.chat.completions.create(model="full", messages=HELLO, tools=[CHAT_TOOL])
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    assert (message.content, message.model_extra) == (FULL.text, {"reasoning_content": FULL.reasoning})
    assert [call.model_dump() for call in message.tool_calls or []] == [dict(call) for call in CALLS]
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.reasoning_tokens == len(str(FULL.reasoning))


async def test_a_chat_stream_adds_up_to_the_whole_answer(gpt: openai.AsyncOpenAI) -> None:
    asks: dict[str, Any] = {"model": "full", "messages": HELLO, "logprobs": True, "extra_body": {"return_token_ids": True}}
    whole = await gpt.chat.completions.create(**asks)
    text, reasoning, ids, logprobs = "", "", [], []
    calls: dict[int, dict[str, Any]] = {}
    stream = await gpt.chat.completions.create(**asks, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    assert [len(chunk.choices) for chunk in chunks] == [1] * (len(chunks) - 1) + [0]
    assert [chunk.usage is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    for chunk in chunks[:-1]:
        choice = chunk.choices[0]
        text += choice.delta.content or ""
        reasoning += (choice.delta.model_extra or {}).get("reasoning_content", "")
        ids += (choice.model_extra or {}).get("token_ids", [])
        logprobs += (choice.logprobs.content or []) if choice.logprobs else []
        for call in choice.delta.tool_calls or []:
            assert call.function is not None
            known = calls.setdefault(call.index, {"id": call.id, "name": call.function.name, "arguments": ""})
            known["arguments"] += call.function.arguments or ""
    choice = whole.choices[0]
    assert (text, reasoning) == (FULL.text, FULL.reasoning)
    assert list(calls.values()) == [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in CALLS]
    assert chunks[-2].choices[0].finish_reason == choice.finish_reason == "tool_calls"
    assert (chunks[0].model_extra or {})["prompt_token_ids"] == whole.model_extra["prompt_token_ids"]
    assert ids == (choice.model_extra or {})["token_ids"]
    assert choice.logprobs is not None
    assert logprobs == choice.logprobs.content
    assert chunks[-1].usage == whole.usage


async def test_log_probabilities_name_each_token(gpt: openai.AsyncOpenAI) -> None:
    answer = await gpt.chat.completions.create(model="echo", messages=[{"role": "user", "content": "aé"}], logprobs=True, top_logprobs=2)
    assert answer.choices[0].logprobs is not None
    tokens = answer.choices[0].logprobs.content or []
    assert [token.token for token in tokens] == ["a", "bytes:\\xc3", "bytes:\\xa9", "<|end|>"]
    assert [token.bytes for token in tokens] == [[97], [0xC3], [0xA9], None]
    for token in tokens:
        assert token.logprob < 0
        assert token.top_logprobs[0].token == token.token
        assert len({other.token for other in token.top_logprobs}) == 2


@pytest.mark.parametrize(
    ("given", "choice"),
    [(None, "auto"), *[(name, name) for name in ("auto", "none", "required")], ({"type": "function", "function": {"name": "add"}}, "add")],
)
def test_what_is_asked_arrives(given: Any, choice: str) -> None:
    body = {**BODIES["/v1/chat/completions"], "tools": [CHAT_TOOL], "tool_choice": given, "temperature": 0, "n": 2, "stop": "x"}
    asked = CHAT.read({**body, "stream": True, "stream_options": {}, "tokens": [1], "max_tokens": 5}, {"x-a": "b"}, 9)
    for index, request in enumerate(asked.requests):
        assert (request.api, request.number, request.model, request.choice, request.prompt_ids) == ("chat", 9, "echo", index, None)
        assert (request.tool_choice, request.headers, [tool.name for tool in request.tools]) == (choice, {"x-a": "b"}, ["add"])
        assert request.sampling_args == {"tool_choice": given, "temperature": 0, "n": 2, "stop": "x", "max_tokens": 5}
    assert (len(asked.requests), asked.num_choices, asked.max_tokens, list(asked.stops)) == (2, 2, 5, ["x"])
    assert asked.prompt_tokens == [len(asked.prompt_ids())] * 2


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({}, None),
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 7, "max_tokens": 5}, 7),
        ({"max_completion_tokens": None, "max_tokens": 5}, 5),
    ],
)
def test_the_new_name_of_the_limit_counts_first(limits: dict[str, Any], limit: int | None) -> None:
    assert CHAT.read({**BODIES["/v1/chat/completions"], **limits}, {}, 1).max_tokens == limit


@pytest.mark.parametrize("choice", ["add", 0, {}, {"function": "add"}, {"function": {"name": 3}}])
def test_what_is_no_tool_choice_is_refused(choice: Any) -> None:
    with pytest.raises(RequestRefused, match="tool_choice must be auto, none, required or a function's name") as refused:
        CHAT.read({**BODIES["/v1/chat/completions"], "tools": [CHAT_TOOL], "tool_choice": choice}, {}, 1)
    assert refused.value.param == "tool_choice"


def test_tools_of_a_token_prompt_are_those_of_the_body_or_else_of_the_prompt() -> None:
    rendered = CHAT.read({**BODIES["/v1/chat/completions"], "tools": [CHAT_TOOL]}, {}, 1).prompt_ids()
    other = {"type": "function", "function": {**CHAT_TOOL["function"], "name": "sub"}}
    for tools, names in ((None, ["add"]), ([], ["add"]), ([other], ["sub"])):
        (request,) = TOKENS.read({"model": "m", "tokens": rendered, "tools": tools, "messages": "not read"}, {}, 1).requests
        assert ([tool.name for tool in request.tools], request.api, request.prompt_ids) == (names, "tokens", rendered)
        assert request.sampling_args == {}


def test_tokens_have_names() -> None:
    assert [token_text(token) for token in (97, 0x7F, 0x80, 0xFF, 262, 10**6, -1)] == [
        *("a", "\x7f", "bytes:\\x80", "bytes:\\xff", "<|end|>", "token_id:1000000", "token_id:-1")
    ]
    assert (alternatives(5, -0.5, 0), alternatives(5, -0.5, 3)) == ([], [(5, -0.5), (6, -1.5), (7, -2.5)])
    assert usage_fields(Usage(1, 0, 2, 3)) == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert usage_fields(Usage(1, 2, 3, 4))["completion_tokens_details"] == {"reasoning_tokens": 2}


async def test_a_stream_says_only_what_was_asked_for(gpt: openai.AsyncOpenAI, server: ModelServer) -> None:
    stream = await gpt.chat.completions.create(model="echo", messages=HELLO, stream=True)
    chunks = [chunk.model_dump(exclude_unset=True) async for chunk in stream]
    assert {frozenset(chunk) for chunk in chunks} == {frozenset({"id", "object", "created", "model", "choices"})}
    assert {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks} == {("chatcmpl-1", "chat.completion.chunk", "echo")}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert {chunk["choices"][0]["logprobs"] for chunk in chunks} == {None}
    _, whole = await post(server, "/v1/chat/completions", {**BODIES["/v1/chat/completions"], "logprobs": True, "top_logprobs": 0})
    assert [token["top_logprobs"] for token in whole["choices"][0]["logprobs"]["content"]] == [[]] * whole["usage"]["completion_tokens"]
    assert (whole["id"], "token_ids" in whole["choices"][0], "prompt_token_ids" in whole) == ("chatcmpl-2", False, False)
