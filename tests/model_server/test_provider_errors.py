"""Errors in the words and shapes of the providers: prompts that are too long, and keys."""

from __future__ import annotations

import pytest

from tests.model_server.asked import BODIES, PATHS, post, says
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer, Overlong


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


@pytest.mark.parametrize("path", PATHS)
async def test_keys_are_checked(path: str) -> None:
    async with ModelServer(api_keys={"sk-good", "sk-banned"}, forbidden_keys={"sk-banned"}) as server:
        header = "x-api-key" if path == "/v1/messages" else "Authorization"
        scheme = "" if path == "/v1/messages" else "Bearer "

        async def status(key: str | None) -> int:
            return (await post(server, path, BODIES[path], **({} if key is None else {header: scheme + key})))[0]

        assert [await status(key) for key in ("sk-good", "sk-wrong", None, "sk-banned")] == [200, 401, 401, 403]


def test_wordings_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="prompt_tokens"):
        Overlong(message="{tokens} are too many")
    with pytest.raises(ConfigurationError, match="status"):
        Overlong(status=200)
