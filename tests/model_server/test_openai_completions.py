"""Completions, asked by OpenAI's SDK."""

from __future__ import annotations

import openai
import pytest

from vfgym.model_server import ModelServer


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
