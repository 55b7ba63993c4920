"""Completions, asked by OpenAI's SDK."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.model_server.asked import post
from vfgym.messages import TextMessage
from vfgym.model_server import ModelServer, RequestRefused
from vfgym.model_server.openai_completions import COMPLETIONS


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


def test_what_is_asked_arrives() -> None:
    body = {"model": "m", "prompt": ["ab", "c"], "n": 2, "best_of": 2, "stop": ["x", "y"], "max_tokens": 5, "temperature": 0}
    asked = COMPLETIONS.read({**body, "stream": False, "stream_options": None, "echo": False, "suffix": ""}, {"x-a": "b"}, 9)
    kept = {"n": 2, "best_of": 2, "stop": ["x", "y"], "max_tokens": 5, "temperature": 0, "echo": False, "suffix": ""}
    for index, request in enumerate(asked.requests):
        assert (request.api, request.number, request.model, request.choice, request.headers) == ("completions", 9, "m", index, {"x-a": "b"})
        assert (request.tools, request.tool_choice, request.prompt_ids, request.sampling_args) == ([], "none", None, kept)
    assert [request.messages for request in asked.requests] == [[TextMessage(text)] for text in ("ab", "ab", "c", "c")]
    assert (asked.num_choices, asked.prompt_tokens, asked.max_tokens, asked.stops) == (2, [2, 2, 1, 1], 5, ["x", "y"])
    of_ids = COMPLETIONS.read({"model": "m", "prompt": [104, 105]}, {}, 1)
    assert ([request.prompt_ids for request in of_ids.requests], of_ids.requests[0].messages) == ([[104, 105]], [TextMessage("hi")])


@pytest.mark.parametrize("prompt", [None, [], [[]], ["a", 1], [[104], []], [[104], "a"], 7, {}])
def test_what_is_no_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(RequestRefused, match="prompt must be text, token ids, or a list of either") as refused:
        COMPLETIONS.read({"model": "m", "prompt": prompt}, {}, 1)
    assert refused.value.param == "prompt"
    for wrong in ([-1], [[104], [10**6]], [["a"]]):
        with pytest.raises(RequestRefused, match=r"^prompt: ") as refused:
            COMPLETIONS.read({"model": "m", "prompt": wrong}, {}, 1)
        assert refused.value.param == "prompt"


@pytest.mark.parametrize(("asked", "is_told", "num_likeliest"), [(None, False, 0), (0, True, 0), (1, True, 1), (3, True, 3)])
async def test_log_probabilities_are_told_with_so_many_alternatives(
    server: ModelServer, asked: int | None, is_told: bool, num_likeliest: int
) -> None:
    _, answer = await post(server, "/v1/completions", {"model": "echo", "prompt": "ab", "logprobs": asked})
    (choice,) = answer["choices"]
    assert (choice["logprobs"] is not None) == is_told
    if is_told:
        likeliest = choice["logprobs"]["top_logprobs"]
        assert [len(each) for each in likeliest or []] == ([num_likeliest] * 3 if num_likeliest else [])
        for token, logprob, others in zip(
            choice["logprobs"]["tokens"], choice["logprobs"]["token_logprobs"], likeliest or [], strict=False
        ):
            assert max(others, key=others.get) == token
            assert others[token] == logprob


async def test_a_stream_of_several_answers_tells_each_apart_and_no_usage_unless_asked(gpt: openai.AsyncOpenAI) -> None:
    stream = await gpt.completions.create(model="echo", prompt=["ab", "cd"], stream=True, extra_body={"return_token_ids": True})
    texts, ends = ["", ""], {}
    async for chunk in stream:
        assert "usage" not in chunk.model_dump(exclude_unset=True)
        (choice,) = chunk.choices
        texts[choice.index] += choice.text
        if choice.finish_reason:
            ends[choice.index] = (choice.finish_reason, (choice.model_extra or {})["prompt_token_ids"])
    assert (texts, ends) == (["ab", "cd"], {0: ("stop", [97, 98]), 1: ("stop", [99, 100])})
