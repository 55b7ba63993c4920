"""The model server, asked by the real SDKs over real HTTP: every API, policy, limit and fault."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import json
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import jsonschema
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym import AssistantMessage, SingleTurnEnv, ToolCall, Usage, UserMessage, blocking
from vfgym.cli.serve_model import load_models, serve
from vfgym.errors import ConfigurationError
from vfgym.model_server import (
    FAULTS,
    Faults,
    ModelRequest,
    ModelServer,
    Overlong,
    Policy,
    Reply,
    RequestRefused,
    detokenize,
    echo,
    environment_oracle,
    load_policy,
    load_script,
    oracle,
    random_policy,
    scripted,
    tokenize,
)

HELLO: list[Any] = [{"role": "user", "content": "héllo 😀"}]
CALLS = [ToolCall("c1", "add", '{"a": 1, "b": 2}'), ToolCall("c2", "add", '{"a": 3, "b": 4}')]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}}
CLAUDE_TOOL: Any = {"name": "add", "description": "Add.", "input_schema": SCHEMA}
FULL = Reply("The sum is 3, and then there is 7.", CALLS, "First I add the small ones, then the big ones.")

MODELS: dict[str, Policy] = {"echo": echo, "full": lambda request: FULL, "random": random_policy(seed=1)}

BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "echo", "messages": HELLO},
    "/v1/chat/completions/tokens": {"model": "echo", "tokens": [258, *tokenize("héllo 😀"), 262, 259]},
    "/v1/completions": {"model": "echo", "prompt": "héllo 😀"},
    "/v1/responses": {"model": "echo", "input": "héllo 😀"},
    "/v1/messages": {"model": "echo", "messages": HELLO, "max_tokens": 100},
}
"""A valid body for each of the APIs; all of them say the same."""

PATHS = sorted(BODIES)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(MODELS) as server:
        yield server


@pytest.fixture
async def gpt(server: ModelServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
async def claude(server: ModelServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client


async def post(server: ModelServer, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    """Post a body (bytes as they are) and return status and parsed answer; of a stream, its text."""
    data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
    headers = {"anthropic-version": "2023-06-01", **headers}
    async with aiohttp.ClientSession() as session, session.post(server.url + path, data=data, headers=headers) as response:
        text = await response.text()
        return response.status, json.loads(text) if "json" in response.headers["Content-Type"] else text


def says(answer: Any) -> str:
    """Return the text in an answer of any of the APIs."""
    if "choices" in answer:
        choice = answer["choices"][0]
        return str(choice["message"]["content"] if "message" in choice else choice["text"])
    parts = answer["content"] if "content" in answer else answer["output"][0]["content"]
    return str(parts[0]["text"])


# Chat completions


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


async def test_the_sdks_own_stream_helper_accumulates(gpt: openai.AsyncOpenAI) -> None:
    async with gpt.chat.completions.stream(model="full", messages=HELLO) as stream:
        completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == FULL.text
    assert [call.function.arguments for call in completion.choices[0].message.tool_calls or []] == [call.arguments for call in CALLS]


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


async def test_a_reply_may_bring_its_own_tokens_and_usage() -> None:
    reply = Reply("hi", finish_reason="content_filter", usage=Usage(7, 1, 2, 9), token_ids=[90_001, 5], logprobs=[-0.5, -0.25])
    async with ModelServer({"m": lambda request: reply}) as server:
        body = {**BODIES["/v1/chat/completions"], "model": "m", "logprobs": True, "return_token_ids": True}
        _, answer = await post(server, "/v1/chat/completions", body)
        choice = answer["choices"][0]
        assert (choice["finish_reason"], choice["token_ids"]) == ("content_filter", [90_001, 5])
        assert [token["logprob"] for token in choice["logprobs"]["content"]] == [-0.5, -0.25]
        assert answer["usage"]["prompt_tokens"] == 7
        assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 1}


# Token ids


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


@given(st.text(st.characters()))
def test_detokenize_undoes_tokenize(text: str) -> None:
    assert detokenize(tokenize(text)) == text


@given(st.text(), st.integers(1, 40))
def test_a_limit_never_splits_a_character(text: str, limit: int) -> None:
    from vfgym.model_server.generation import generate

    made = generate(Reply(text), prompt_tokens=1, max_tokens=limit, stops=())
    assert text.startswith(made.text or "")
    assert len(made.token_ids) == made.usage.completion_tokens <= limit
    assert (made.finish_reason == "length") == (len(text.encode()) + 1 > limit)
    assert detokenize(made.token_ids).removesuffix("<|end|>") == made.text or text.endswith("<|end|>")


# Completions


async def test_completions_take_text_and_token_ids(gpt: openai.AsyncOpenAI) -> None:
    one = await gpt.completions.create(model="echo", prompt="abc", logprobs=1, extra_body={"return_token_ids": True})
    choice = one.choices[0]
    assert (choice.text, choice.finish_reason) == ("abc", "stop")
    assert choice.model_extra == {"token_ids": [97, 98, 99, 262], "prompt_token_ids": [97, 98, 99]}
    assert choice.logprobs is not None
    assert (choice.logprobs.tokens, choice.logprobs.text_offset) == (["a", "b", "c", "<|end|>"], [0, 1, 2, 3])
    assert len(choice.logprobs.token_logprobs or []) == 4
    two = await gpt.completions.create(model="echo", prompt=["ab", "cd"], n=2)
    assert [choice.text for choice in two.choices] == ["ab", "ab", "cd", "cd"]
    assert two.usage is not None
    assert (two.usage.prompt_tokens, two.usage.completion_tokens) == (4, 12)
    of_ids = await gpt.completions.create(model="echo", prompt=[[104, 105], [111]])
    assert [choice.text for choice in of_ids.choices] == ["hi", "o"]


async def test_a_completion_stream_adds_up(gpt: openai.AsyncOpenAI) -> None:
    prompt = "some text that takes several pieces"
    stream = await gpt.completions.create(model="echo", prompt=prompt, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == prompt
    assert len(chunks) > 3
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == len(prompt)


async def test_completions_refuse_what_they_cannot_carry(gpt: openai.AsyncOpenAI, server: ModelServer) -> None:
    with pytest.raises(openai.InternalServerError, match="carries text only"):
        await gpt.with_options(max_retries=2).completions.create(model="full", prompt="a")
    assert server.num_requests == 1
    for extra in ({"echo": True}, {"suffix": "x"}, {"best_of": 3}):
        with pytest.raises(openai.BadRequestError, match="not supported"):
            await gpt.completions.create(model="echo", prompt="a", extra_body=extra)


# Responses


async def test_responses_carry_reasoning_text_and_calls(gpt: openai.AsyncOpenAI) -> None:
    tool: Any = {"type": "function", **CHAT_TOOL["function"], "strict": None}
    response = await gpt.responses.create(model="full", input="add", instructions="Be brief.", tools=[tool], temperature=0.5)
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert (response.output_text, response.status, response.instructions) == (FULL.text, "completed", "Be brief.")
    assert response.usage is not None
    assert response.usage.output_tokens_details.reasoning_tokens == len(str(FULL.reasoning))


async def test_a_response_can_be_sent_back_as_input() -> None:
    asked: list[ModelRequest] = []

    def policy(request: ModelRequest) -> Reply:
        asked.append(request)
        return FULL if len(asked) == 1 else Reply("done")

    async with ModelServer({"m": policy}) as server, openai.AsyncOpenAI(base_url=server.openai_url, api_key="k") as gpt:
        first = await gpt.responses.create(model="m", input="add")
        parts = [{"type": "input_text", "text": "4"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]
        outputs = [
            {"type": "function_call_output", "call_id": call.id, "output": output} for call, output in zip(CALLS, ("3", parts), strict=True)
        ]
        items: Any = [{"role": "user", "content": "add"}, *first.output, *outputs]
        second = await gpt.responses.create(model="m", input=items, instructions="Be brief.")
        assert second.output_text == "done"
    system, user, assistant, *results = asked[1].messages
    assert (system.role, system.content, user.content) == ("system", "Be brief.", "add")
    assert (assistant.content, assistant.reasoning_content, list(assistant.tool_calls)) == (FULL.text, FULL.reasoning, CALLS)
    seen = [{"type": "text", "text": "4"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    assert [(result.tool_call_id, result.content) for result in results] == [("c1", "3"), ("c2", seen)]


async def test_a_response_stream_has_the_documented_events(gpt: openai.AsyncOpenAI) -> None:
    events = [event async for event in await gpt.responses.create(model="full", input="add", stream=True)]
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    for kind in ("response.reasoning_summary_text.delta", "response.output_text.delta", "response.function_call_arguments.delta"):
        assert kind in kinds
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == FULL.text
    told: defaultdict[str, str] = defaultdict(str)
    for event in events:
        if event.type == "response.function_call_arguments.delta":
            told[event.item_id] += event.delta
    assert [*told.values()] == [call.arguments for call in CALLS]  # each call is told its own
    async with gpt.responses.stream(model="full", input="add") as stream:
        final = await stream.get_final_response()
    assert final.output_text == FULL.text
    assert [item.arguments for item in final.output if item.type == "function_call"] == [call.arguments for call in CALLS]


async def test_responses_refuse_parameters_of_chat(gpt: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="Unknown parameter: 'stop'"):
        await gpt.responses.create(model="echo", input="a", extra_body={"stop": ["x"]})
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        await gpt.responses.create(model="echo", input="a", previous_response_id="resp_1")


# Anthropic's messages


async def test_messages_carry_thinking_text_and_tool_use(claude: anthropic.AsyncAnthropic) -> None:
    message = await claude.messages.create(model="full", max_tokens=1000, messages=HELLO, tools=[CLAUDE_TOOL], system="Be brief.")
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert message.stop_reason == "tool_use"
    thinking, text, *calls = message.content
    assert (thinking.thinking, text.text) == (FULL.reasoning, FULL.text)  # type: ignore[union-attr]
    assert [(call.id, call.input) for call in calls] == [(call.id, json.loads(call.arguments)) for call in CALLS]  # type: ignore[union-attr]


async def test_a_message_stream_adds_up_to_the_whole_message(claude: anthropic.AsyncAnthropic) -> None:
    whole = await claude.messages.create(model="full", max_tokens=1000, messages=HELLO)
    async with claude.messages.stream(model="full", max_tokens=1000, messages=HELLO) as stream:
        streamed = await stream.get_final_message()
    ignored = {"id": True, "content": {"__all__": {"parsed_output"}}}
    assert streamed.model_dump(exclude=ignored) == whole.model_dump(exclude=ignored)  # type: ignore[arg-type]
    raw = await claude.messages.create(model="full", max_tokens=1000, messages=HELLO, stream=True)
    kinds = [event.type async for event in raw]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 4


async def test_a_message_can_be_sent_back(claude: anthropic.AsyncAnthropic, server: ModelServer) -> None:
    asked: list[ModelRequest] = []

    def policy(request: ModelRequest) -> str:
        asked.append(request)
        return "done"

    server.models["asks"] = policy
    first = await claude.messages.create(model="full", max_tokens=1000, messages=HELLO, tools=[CLAUDE_TOOL])
    results = [{"type": "tool_result", "tool_use_id": "c1", "content": "3"}, {"type": "tool_result", "tool_use_id": "c2", "is_error": True}]
    turn: Any = {"role": "user", "content": [*results, {"type": "text", "text": "go on"}]}
    await claude.messages.create(model="asks", max_tokens=9, messages=[*HELLO, first.to_param(), turn], tools=[CLAUDE_TOOL])
    user, assistant, *tool_messages, last = asked[0].messages
    assert (user.content, last.content, assistant.content) == (HELLO[0]["content"], "go on", FULL.text)
    assert (assistant.reasoning_content, list(assistant.tool_calls)) == (FULL.reasoning, CALLS)
    assert [(each.tool_call_id, each.content) for each in tool_messages] == [("c1", "3"), ("c2", "")]
    assert tool_messages[1].is_error is True
    changed: Any = first.to_param()
    changed["content"] = [{**changed["content"][0].model_dump(), "thinking": "something else"}, *changed["content"][1:]]
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        await claude.messages.create(model="asks", max_tokens=9, messages=[*HELLO, changed, turn])


async def test_messages_count_tokens(claude: anthropic.AsyncAnthropic) -> None:
    counted = await claude.messages.count_tokens(model="echo", messages=HELLO, tools=[CLAUDE_TOOL])
    message = await claude.messages.create(model="echo", max_tokens=9, messages=HELLO, tools=[CLAUDE_TOOL])
    assert counted.input_tokens == message.usage.input_tokens


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"messages": [{"role": "system", "content": "x"}]}, "unexpected role"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "must be non-empty"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": ""}]}]},
            "answers the tool call",
        ),
        ({"tools": [{"name": "x"}]}, "input_schema"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
    ],
)
async def test_messages_are_checked_as_anthropic_does(server: ModelServer, change: dict[str, Any], problem: str) -> None:
    status, answer = await post(server, "/v1/messages", {**BODIES["/v1/messages"], **change})
    assert (status, answer["type"], answer["error"]["type"]) == (400, "error", "invalid_request_error")
    assert problem in answer["error"]["message"]


# Limits


@pytest.mark.parametrize(
    ("path", "limit", "finish"),
    [
        ("/v1/chat/completions", "max_tokens", "length"),
        ("/v1/chat/completions", "max_completion_tokens", "length"),
        ("/v1/chat/completions/tokens", "max_tokens", "length"),
        ("/v1/completions", "max_tokens", "length"),
        ("/v1/responses", "max_output_tokens", "incomplete"),
        ("/v1/messages", "max_tokens", "max_tokens"),
    ],
)
async def test_an_answer_is_cut_at_the_limit(server: ModelServer, path: str, limit: str, finish: str) -> None:
    status, answer = await post(server, path, {**BODIES[path], limit: 4})
    assert status == 200
    assert says(answer) == "hél"
    usage = answer["usage"]
    assert usage.get("completion_tokens", usage.get("output_tokens")) == 4
    ends = [answer.get("stop_reason"), answer.get("status"), answer.get("choices", [{}])[0].get("finish_reason")]
    assert finish in ends
    if path == "/v1/responses":
        assert answer["incomplete_details"] == {"reason": "max_output_tokens"}


async def test_a_limit_cuts_reasoning_and_calls_too(server: ModelServer) -> None:
    body = {"model": "full", "messages": HELLO, "tools": [CHAT_TOOL], "return_token_ids": True}
    _, whole = await post(server, "/v1/chat/completions", body)
    num_tokens = whole["usage"]["completion_tokens"]
    _, cut = await post(server, "/v1/chat/completions", {**body, "max_tokens": num_tokens - 3})
    message = cut["choices"][0]["message"]
    assert cut["choices"][0]["finish_reason"] == "length"
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == [CALLS[0].arguments, CALLS[1].arguments[:-2]]
    assert cut["choices"][0]["token_ids"] == whole["choices"][0]["token_ids"][: num_tokens - 3]
    _, short = await post(server, "/v1/chat/completions", {**body, "max_tokens": 6})
    assert short["choices"][0]["message"]["reasoning_content"] == "First"
    assert "tool_calls" not in short["choices"][0]["message"]
    _, message = await post(server, "/v1/messages", {"model": "full", "messages": HELLO, "max_tokens": num_tokens - 3})
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use"]
    assert message["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/messages"])
async def test_stop_sequences_end_the_answer(server: ModelServer, path: str) -> None:
    name = "stop_sequences" if path == "/v1/messages" else "stop"
    _, answer = await post(server, path, {**BODIES[path], name: ["zzz", "lo", "o"]})
    assert says(answer) == "hél"
    if path == "/v1/messages":
        assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", "lo")
    else:
        assert answer["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("path", PATHS)
async def test_a_prompt_beyond_the_context_is_refused(path: str) -> None:
    async with ModelServer(max_model_len=8) as server:
        status, answer = await post(server, path, BODIES[path])
        assert status == 400
        words = "prompt is too long: " if path == "/v1/messages" else "maximum context length is 8 tokens"
        assert words in answer["error"]["message"]
        if path != "/v1/messages":
            assert answer["error"]["code"] == "context_length_exceeded"
        assert server.num_requests == 1


async def test_prompt_and_answer_share_the_context() -> None:
    num_prompt = len("héllo 😀".encode()) + 3
    async with ModelServer(max_model_len=num_prompt + 3) as server:
        status, answer = await post(server, "/v1/chat/completions", {**BODIES["/v1/chat/completions"], "max_tokens": 100})
        assert (status, says(answer), answer["choices"][0]["finish_reason"]) == (200, "hé", "length")
        assert (await post(server, "/tokenize", {"prompt": "a"}))[1]["max_model_len"] == num_prompt + 3


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_other_words_for_a_prompt_that_is_too_long(path: str) -> None:
    overlong = Overlong(500, "VLLMValidationError: {prompt_tokens} > {max_model_len}", code="too_much", kind="internal")
    async with ModelServer(max_model_len=8, overlong=overlong) as server:
        status, answer = await post(server, path, BODIES[path])
        num_prompt = len("héllo 😀".encode()) + 3
        assert (status, answer["error"]["message"]) == (500, f"VLLMValidationError: {num_prompt} > 8")
        assert answer["error"]["type"] == "internal"


# Keys


@pytest.mark.parametrize("path", PATHS)
async def test_keys_are_checked(path: str) -> None:
    async with ModelServer(api_keys={"sk-good", "sk-banned"}, forbidden_keys={"sk-banned"}) as server:
        header = "x-api-key" if path == "/v1/messages" else "Authorization"
        scheme = "" if path == "/v1/messages" else "Bearer "

        async def status(key: str | None) -> int:
            return (await post(server, path, BODIES[path], **({} if key is None else {header: scheme + key})))[0]

        assert [await status(key) for key in ("sk-good", "sk-wrong", None, "sk-banned")] == [200, 401, 401, 403]


async def test_refused_keys_raise_the_errors_of_the_sdks() -> None:
    async with ModelServer(api_keys={"good"}, forbidden_keys={"banned"}) as server:
        for key, wrong, wrong_too in (
            ("wrong-and-long-key", openai.AuthenticationError, anthropic.AuthenticationError),
            ("banned", openai.PermissionDeniedError, anthropic.PermissionDeniedError),
        ):
            async with openai.AsyncOpenAI(base_url=server.openai_url, api_key=key) as gpt:
                with pytest.raises(wrong) as error:
                    await gpt.chat.completions.create(model="echo", messages=HELLO)
                assert key not in str(error.value)
            async with anthropic.AsyncAnthropic(base_url=server.url, api_key=key) as claude:
                with pytest.raises(wrong_too):
                    await claude.messages.create(model="echo", max_tokens=9, messages=HELLO)


# Faults


STATUS_OF = {"rate_limited": 429, "server_error": 500, "overlong": 400}


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_every_fault_can_be_asked_for(server: ModelServer, path: str, is_stream: bool) -> None:
    body = {**BODIES[path], "stream": is_stream}
    for kind in FAULTS:
        asking = post(server, path, body, **{"X-Fault": kind})
        if kind in STATUS_OF:
            status, answer = await asking
            assert status == STATUS_OF[kind]
            assert answer["error"]["message"]
        elif kind.startswith("cut"):
            with pytest.raises(aiohttp.ClientError):
                await asking
        elif kind == "hung":
            task = asyncio.create_task(asking)
            while not server.faults_given["hung"]:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        elif kind == "empty_reply":
            status, answer = await asking
            assert status == 200
            assert "llo" not in str(answer)
        elif is_stream:
            _, text = await asking
            data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
            with pytest.raises(json.JSONDecodeError):
                [json.loads(line) for line in data]
        else:
            with pytest.raises(json.JSONDecodeError):
                await asking
    assert server.faults_given == dict.fromkeys(FAULTS, 1)
    status, _ = await post(server, path, body)
    assert status == 200


async def test_the_sdks_retry_what_passes() -> None:
    def twice(request: ModelRequest) -> str | None:
        return "rate_limited" if request.number < 3 else None

    async with ModelServer(faults=twice) as server:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=2) as gpt:
            answer = await gpt.chat.completions.create(model="echo", messages=HELLO)
        assert answer.choices[0].message.content == "héllo 😀"
        assert server.num_requests == 3
        assert server.faults_given == {"rate_limited": 2}


async def test_rate_limits_say_when_to_come_back() -> None:
    async def header(faults: Faults) -> str | None:
        async with (
            ModelServer(faults=faults) as server,
            aiohttp.ClientSession() as session,
            session.post(server.openai_url + "/completions", json=BODIES["/v1/completions"]) as response,
        ):
            assert response.status == 429
            return response.headers.get("Retry-After")

    assert await header(Faults(rate_limited=1, retry_after=2.5)) == "2.5"
    assert await header(Faults(rate_limited=1, retry_after=None)) is None


async def test_faults_by_chance_replay_under_their_seed() -> None:
    faults = Faults(seed=3, rate_limited=0.2, server_error=0.2, empty_reply=0.1)

    async def statuses() -> list[int]:
        async with ModelServer(faults=faults) as server:
            found = [(await post(server, "/v1/completions", BODIES["/v1/completions"]))[0] for _ in range(40)]
            assert server.faults_given["rate_limited"] == found.count(429)
            assert server.faults_given["server_error"] == found.count(500)
            return found

    found = await statuses()
    assert {200, 429, 500} == set(found)
    assert await statuses() == found


def test_faults_come_as_often_as_asked_for() -> None:
    faults = Faults(seed=1, rate_limited=0.1, cut_connection=0.2)
    drawn = [faults.drawn(number) for number in range(1, 4001)]
    assert 300 < drawn.count("rate_limited") < 500
    assert 300 < drawn.count("cut_in_body") < 500
    assert 300 < drawn.count("cut_before_headers") < 500
    assert drawn != [Faults(seed=2, rate_limited=0.1, cut_connection=0.2).drawn(number) for number in range(1, 4001)]


@pytest.mark.parametrize("arguments", [{"hung": 1.5}, {"hung": -0.1}, {"hung": 0.6, "overlong": 0.6}, {"retry_after": -1}, {"hung": True}])
def test_shares_that_cannot_be_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="must"):
        Faults(**arguments)


async def test_an_unknown_fault_is_refused(server: ModelServer) -> None:
    status, answer = await post(server, "/v1/completions", BODIES["/v1/completions"], **{"X-Fault": "server_eror"})
    assert status == 400
    assert "Did you mean `server_error`" in answer["error"]["message"]


# Bad requests


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        (b"", 400, "no body"),
        (b"{not json", 400, "could not parse the JSON body"),
        (b"\xff\xfe\xfa", 400, "could not parse the JSON body"),
        (b"[" * 100_000, 400, "could not parse the JSON body"),
        ([1], 400, "must be a JSON object, got list"),
        ({"model": "ecko"}, 404, "Did you mean `echo`"),
        ({"model": 3}, 400, "must provide a model"),
        ({"model": "echo"}, 400, ""),
    ],
)
async def test_bad_bodies_are_explained_in_the_providers_shape(
    server: ModelServer, path: str, body: Any, status: int, problem: str
) -> None:
    if isinstance(body, dict) and body["model"] == "ecko":
        body = {**BODIES[path], **body}
    elif body == {"model": "echo"}:
        body = {"model": "echo", "max_tokens": 1} if path == "/v1/messages" else body
    got, answer = await post(server, path, body)
    assert got == status
    assert problem in answer["error"]["message"]
    assert ("param" in answer["error"]) == (path != "/v1/messages")
    assert (answer.get("type") == "error") == (path == "/v1/messages")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "text", "content": "x"}]}, "'text'"),
        ({"messages": [*HELLO, {"role": "tool", "tool_call_id": "x", "content": ""}]}, "answers the tool call 'x'"),
        ({"messages": [*HELLO, AssistantMessage(tool_calls=CALLS), UserMessage("?")]}, "c1, c2"),
        ({"n": 0}, "n must be an integer from 1 to 128, got 0"),
        ({"n": 129}, "n must be an integer from 1 to 128, got 129"),
        ({"n": 10**9}, "n must be an integer from 1 to 128"),
        ({"n": 10**400}, "n must be an integer from 1 to 128"),
        ({"top_logprobs": 10**9}, "top_logprobs must be an integer from 0 to 20"),
        ({"max_tokens": "many"}, "max_tokens must be an integer"),
        ({"stop": 3}, "stop must be"),
        ({"tools": [{"type": "magic"}]}, "a tool is"),
        ({"tools": "add"}, "tools must be a list"),
        ({"tool_choice": "required"}, "no tools are offered"),
        ({"tool_choice": {"type": "function", "function": {"name": "sub"}}, "tools": [CHAT_TOOL]}, "'sub'"),
        ({"functions": [{}]}, "use 'tools'"),
        ({"stream": True, "stream_options": "all"}, "stream_options"),
    ],
)
async def test_bad_fields_are_explained(server: ModelServer, change: dict[str, Any], problem: str) -> None:
    status, answer = await post(server, "/v1/chat/completions", {**BODIES["/v1/chat/completions"], **change})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert problem in answer["error"]["message"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"n": 10**9}, "n must be an integer from 1 to 128"),
        ({"n": 10**9, "best_of": 10**9}, "n must be an integer from 1 to 128"),
        ({"logprobs": 10**9}, "logprobs must be an integer from 0 to 20"),
        ({"prompt": ["a"] * 17, "n": 128}, "a request may have 2048 answers, got 17 prompts with n = 128"),
        ({"prompt": ["a"] * 2049}, "a request may have 2048 answers, got 2049 prompts with n = 1"),
    ],
)
async def test_a_request_asks_for_so_many_answers_at_most(server: ModelServer, change: dict[str, Any], problem: str) -> None:
    status, answer = await post(server, "/v1/completions", {**BODIES["/v1/completions"], **change})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert problem in answer["error"]["message"]
    most = {"prompt": ["a"] * 16, "n": 128, "logprobs": 20}
    status, answer = await post(server, "/v1/completions", {**BODIES["/v1/completions"], **most})
    assert (status, len(answer["choices"])) == (200, 2048)


async def test_wrong_paths_and_methods_are_explained(server: ModelServer) -> None:
    status, answer = await post(server, "/v1/chat/completion", {})
    assert status == 404
    assert "Did you mean `/v1/chat/completions`" in answer["error"]["message"]
    assert (await post(server, "/health", {}))[0] == 405
    async with aiohttp.ClientSession() as session, session.get(server.openai_url + "/responses") as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.text(max_size=3) | st.sampled_from(["user", "tool", "assistant", "function"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "id", "name", "tool_calls", "function", "input"]), inner)
    ),
    max_leaves=6,
)
FIELDS = (
    "messages",
    "prompt",
    "input",
    "tokens",
    "tools",
    "tool_choice",
    "n",
    "stop",
    "stop_sequences",
    "system",
    "stream",
    "stream_options",
)
FIELDS = (*FIELDS, "max_tokens", "logprobs", "top_logprobs", "instructions", "reasoning", "text", "metadata", "seed", "temperature")


@pytest.fixture(scope="module")
def thread_server() -> Iterator[ModelServer]:
    with ModelServer(MODELS) as server:
        yield server


@pytest.fixture(scope="module")
def connection(thread_server: ModelServer) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(thread_server.url.removeprefix("http://"))
    yield connection
    connection.close()


@settings(max_examples=400)
@given(
    path=st.sampled_from(PATHS),
    is_stream=st.booleans(),
    changes=st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1, max_size=3),
)
def test_no_body_brings_the_server_down(
    connection: http.client.HTTPConnection, path: str, is_stream: bool, changes: dict[str, Any]
) -> None:
    body = json.dumps({**BODIES[path], "stream": is_stream, **changes})
    connection.request("POST", path, body, {"anthropic-version": "1"})
    response = connection.getresponse()
    text = response.read()
    assert response.status in (200, 400), (body, text)


# Policies


def request_of(
    *messages: Any, number: int = 1, choice: int = 0, tools: Any = (), tool_choice: str = "auto", **sampling: Any
) -> ModelRequest:
    from vfgym.messages import as_messages
    from vfgym.tools import as_tool

    offered = [as_tool(tool) for tool in tools]
    return ModelRequest("chat", number, "m", as_messages(list(messages)), offered, tool_choice, sampling, {}, choice)


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


def test_scripts_follow_the_turn() -> None:
    policy: Callable[[ModelRequest], Any] = scripted(["one", {"tool_calls": [dict(CALLS[0])]}])
    talk = [UserMessage("go"), AssistantMessage("one"), UserMessage("on")]
    assert policy(request_of(talk[0])).text == "one"
    assert list(policy(request_of(*talk)).tool_calls) == [CALLS[0]]
    with pytest.raises(RequestRefused, match=r"2 answer\(s\), and the conversation asks for number 3") as error:
        policy(request_of(*talk, AssistantMessage("two"), UserMessage("on")))
    assert error.value.status == 400


def test_scripts_may_depend_on_the_question() -> None:
    policy: Callable[[ModelRequest], Any] = scripted({"sum": "3", "sum of squares": ["5", "really 5"]})
    assert policy(request_of(UserMessage("the sum?"))).text == "3"
    assert policy(request_of(UserMessage("the sum of squares?"))).text == "5"
    with pytest.raises(RequestRefused, match="no answers to 'product'"):
        policy(request_of(UserMessage("product")))


@pytest.mark.parametrize("script", ["text", 3, [3], {"a": 3}, {3: ["a"]}])
def test_what_is_no_script_is_refused(script: Any) -> None:
    with pytest.raises(ConfigurationError, match="script"):
        scripted(script)


def test_scripts_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"go": ["é", {"content": "two"}]}', "utf-8")
    (tmp_path / "b.jsonl").write_text('"one"\n\n{"content": "two\u2028"}\n', "utf-8")
    (tmp_path / "c.json").write_text("{", "utf-8")
    policy: Callable[[ModelRequest], Any] = load_script(tmp_path / "a.json")
    assert policy(request_of(UserMessage("go"))).text == "é"
    policy = load_script(tmp_path / "b.jsonl")
    assert policy(request_of(UserMessage("go"), AssistantMessage("one"), UserMessage("on"))).text == "two\u2028"
    for name in ("c.json", "missing.json"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load_script(tmp_path / name)


def test_the_random_policy_calls_tools_that_are_offered() -> None:
    policy: Callable[[ModelRequest], Any] = random_policy(seed=5)
    answers = [policy(request_of(*HELLO, number=number, tools=[CHAT_TOOL])) for number in range(60)]
    calls = [answer for answer in answers if isinstance(answer, Reply)]
    assert 15 < len(calls) < 45
    assert {len(reply.tool_calls) for reply in calls} == {1, 2}
    for call in (call for reply in calls for call in reply.tool_calls):
        jsonschema.validate(json.loads(call.arguments), SCHEMA)
    for number in range(20):
        assert isinstance(policy(request_of(*HELLO, number=number, tools=[CHAT_TOOL], tool_choice="none")), AssistantMessage)
        for choice in ("required", "add"):
            asked = request_of(*HELLO, number=number, tools=[CHAT_TOOL], tool_choice=choice, parallel_tool_calls=False)
            assert [call.name for call in policy(asked).tool_calls] == ["add"]
        assert isinstance(policy(request_of(*HELLO, number=number)), AssistantMessage)


def test_the_random_policy_replays_under_the_seed_of_the_request() -> None:
    policy: Callable[[ModelRequest], Any] = random_policy(seed=5)
    seeded = [policy(request_of(*HELLO, number=number, seed=11)).content for number in range(5)]
    assert len(set(seeded)) == 1
    assert len({policy(request_of(*HELLO, number=number)).content for number in range(20)}) > 5
    assert len({policy(request_of(*HELLO, choice=choice, seed=11)).content for choice in range(20)}) > 5
    other: Callable[[ModelRequest], Any] = random_policy(seed=6)
    assert [other(request_of(*HELLO, number=number)).content for number in range(5)] != [
        policy(request_of(*HELLO, number=number)).content for number in range(5)
    ]


async def test_oracles_know_answers() -> None:
    async def later(question: str) -> str | None:
        return "7" if question == "héllo 😀" else None

    models = {"dict": oracle({"llo": "short", "héllo": "long"}), "function": oracle(later), "none": oracle({"other": "x"})}
    async with ModelServer(models) as server:
        for name, expected in (("dict", "long"), ("function", "7")):
            _, answer = await post(server, "/v1/chat/completions", {"model": name, "messages": HELLO})
            assert says(answer) == expected
        for name, question in (("none", "héllo"), ("function", "what?")):
            body = {"model": name, "messages": [{"role": "user", "content": question}]}
            status, answer = await post(server, "/v1/chat/completions", body)
            assert status == 400
            assert "the oracle knows no answer" in answer["error"]["message"]
    with pytest.raises(ConfigurationError, match="answers by question"):
        oracle(3)  # type: ignore[arg-type]


async def test_an_environments_oracle_answers_its_tasks() -> None:
    rows = [{"question": f"{index} squared?", "answer": str(index * index)} for index in range(30)]
    env = SingleTurnEnv(rows, system_prompt="Answer with a number.")
    async with ModelServer({"oracle": environment_oracle(env)}) as server:
        for index in (2, 12):
            observation, _ = env.reset(options={"example_id": index})
            body = {"model": "oracle", "messages": observation}
            _, answer = await post(server, "/v1/chat/completions", body)
            assert says(answer) == str(index * index)
        assert (await post(server, "/v1/chat/completions", {"model": "oracle", "messages": HELLO}))[0] == 400


def test_an_environment_with_no_answers_has_no_oracle() -> None:
    from vfgym import ProceduralTasks

    with pytest.raises(ConfigurationError, match="without end"):
        environment_oracle(SingleTurnEnv(ProceduralTasks(lambda index: {"question": str(index)})))


def test_policies_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "served_policies.py").write_text(
        "def shout(request):\n    return 'HI'\n\nclass Made:\n    __call__ = shout\n\ntext = 'x'\n"
    )
    assert load_policy("echo") is echo
    assert load_policy("served_policies:shout")(request_of(*HELLO)) == "HI"
    made: Any = load_policy("served_policies:Made")
    assert type(made).__name__ == "Made"
    for name, problem in (
        ("ecko", "Did you mean `echo`"),
        ("served_policies:shoot", "Did you mean `shout`"),
        ("served_policies:text", "must be a function"),
        ("no_such_module_at_all:x", "there is no module"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            load_policy(name)


# Life


async def test_models_and_health(gpt: openai.AsyncOpenAI, server: ModelServer) -> None:
    assert [model.id async for model in gpt.models.list()] == list(MODELS)
    async with aiohttp.ClientSession() as session, session.get(server.url + "/health") as response:
        assert (response.status, await response.json()) == (200, {"status": "ok"})


async def test_requests_are_recorded_and_the_newest_kept() -> None:
    async with ModelServer(keep_requests=2) as server:
        for index in range(3):
            await post(server, "/v1/completions", {"model": "echo", "prompt": str(index)}, **{"X-Index": str(index)})
        await post(server, "/v1/completions", b"oops")
        assert server.num_requests == 4
        kept = server.requests
        assert [request.number for request in kept] == [3, 4]
        assert [request.body for request in kept] == [{"model": "echo", "prompt": "2"}, "oops"]
        assert (kept[0].method, kept[0].path, kept[0].headers["x-index"]) == ("POST", "/v1/completions", "2")


async def test_many_at_once(server: ModelServer) -> None:
    async with aiohttp.ClientSession() as session:

        async def ask(index: int) -> str:
            body = {"model": "echo", "messages": [{"role": "user", "content": f"{index}" * 50}]}
            async with session.post(server.openai_url + "/chat/completions", json=body) as response:
                return says(await response.json())

        assert await asyncio.gather(*[ask(index) for index in range(200)]) == [str(index) * 50 for index in range(200)]


async def test_latency_lets_others_in_and_big_conversations_are_taken() -> None:
    async with ModelServer(latency=0.001) as server:
        text = "é" * 1_000_000
        status, answer = await post(server, "/v1/chat/completions", {"model": "echo", "messages": [{"role": "user", "content": text}]})
        assert (status, says(answer)) == (200, text)


async def test_half_a_surrogate_pair_passes_through(server: ModelServer) -> None:
    status, answer = await post(server, "/v1/chat/completions", b'{"model": "echo", "messages": [{"role": "user", "content": "a\\ud800"}]}')
    assert (status, says(answer)) == (200, "a\ud800")


def test_plain_code_uses_a_thread() -> None:
    threads = threading.enumerate()
    server = ModelServer()
    for _ in range(2):
        with server, openai.OpenAI(base_url=server.openai_url, api_key="k") as gpt:
            assert gpt.chat.completions.create(model="echo", messages=HELLO).choices[0].message.content == "héllo 😀"
            with anthropic.Anthropic(base_url=server.url, api_key="k") as claude:
                assert claude.messages.create(model="echo", max_tokens=99, messages=HELLO).content[0].text == "héllo 😀"  # type: ignore[union-attr]
    server.close()
    assert server.num_requests == 4
    assert threading.enumerate() == threads
    with pytest.raises(ConfigurationError, match="does not run"):
        _ = server.url


async def test_a_thread_serves_beside_a_running_loop() -> None:
    with ModelServer() as server:
        assert (await post(server, "/v1/completions", BODIES["/v1/completions"]))[0] == 200
        with pytest.raises(ConfigurationError, match="runs already"):
            await server.start()


async def test_starting_and_closing_in_the_wrong_place(server: ModelServer) -> None:
    with pytest.raises(ConfigurationError, match="runs already"):
        server.start_thread()
    with pytest.raises(ConfigurationError, match="aclose"):
        server.close()
    await server.aclose()
    await server.aclose()
    assert not server.is_running


def test_a_port_in_use_is_an_os_error() -> None:
    with ModelServer() as server:
        other = ModelServer(port=int(server.url.rpartition(":")[2]))
        with pytest.raises(OSError, match="address"):
            other.start_thread()
        assert not other.is_running


@pytest.mark.parametrize("body", [BODIES["/v1/chat/completions"], {**BODIES["/v1/chat/completions"], "stream": True}])
async def test_closing_ends_what_hangs(body: dict[str, Any]) -> None:
    server = ModelServer()
    await server.start()
    task = asyncio.create_task(post(server, "/v1/chat/completions", body, **{"X-Fault": "hung"}))
    while not server.faults_given:
        await asyncio.sleep(0)
    await server.aclose()
    with pytest.raises(aiohttp.ClientError):
        await task


async def test_closing_ends_a_stream_that_nobody_reads() -> None:
    server = ModelServer()
    await server.start()
    text = "x" * 20_000_000
    body = json.dumps({"model": "echo", "stream": True, "messages": [{"role": "user", "content": text}]}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]), limit=1)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    await reader.readexactly(1)
    await server.aclose()
    num_received = 0
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 20):
            num_received += len(data)
    writer.close()
    assert num_received < len(text)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"models": {}}, "at least one model"),
        ({"models": echo}, "policies by name"),
        ({"models": {"m": "echo"}}, "model 'm' must be a function"),
        ({"models": {"": echo}}, "name of a model"),
        ({"latency": -1}, "latency"),
        ({"max_model_len": 0}, "max_model_len"),
        ({"faults": {"hung": 1}}, "faults must be"),
        ({"api_keys": "sk-test"}, "api_keys must be a set"),
        ({"keep_requests": -1}, "keep_requests"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        ModelServer(**arguments)


def test_wordings_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="prompt_tokens"):
        Overlong(message="{tokens} are too many")
    with pytest.raises(ConfigurationError, match="status"):
        Overlong(status=200)


# The command


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('["scripted answer"]')
    (tmp_path / "my_policies.py").write_text("def shout(request):\n    return 'HI'\n")
    command = [sys.executable, "-m", "vfgym", "serve-model", "echo", "mine=my_policies:shout", "--script", "script.json", "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        assert lines[0] == "models: echo, mine, scripted\n"
        url = lines[1].split()[-1]
        assert lines[3] == f"for example: vfgym eval ID --model echo --base-url {url}\n"
        with openai.OpenAI(base_url=url, api_key="k") as gpt:
            for model, text in (("echo", "héllo 😀"), ("mine", "HI"), ("scripted", "scripted answer")):
                assert gpt.chat.completions.create(model=model, messages=HELLO).choices[0].message.content == text
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=240)
        assert (process.returncode, output.strip(), errors) == (0, "stopped after 3 request(s)", "")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("name", "problem"), [("scripted", "--script"), ("oracle", "--env"), ("ecko", "Did you mean `echo`")])
def test_the_command_explains_which_model_is_missing(name: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        load_models([name])


def test_the_command_explains_that_it_cannot_listen() -> None:
    with pytest.raises(ConfigurationError, match=r"cannot listen on 203\.0\.113\.1"):
        serve(ModelServer(host="203.0.113.1"))
