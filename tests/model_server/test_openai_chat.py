"""Chat completions, asked by OpenAI's SDK."""

from __future__ import annotations

from typing import Any

import openai

from tests.model_server.asked import CALLS, CHAT_TOOL, FULL, HELLO
from vfgym.model_server import ModelServer


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
