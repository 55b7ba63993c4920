"""Chat completions through the OpenAI SDK: what passes by its `create`, and what goes through one that somebody wrapped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from tests.clients.canned_server import CannedServer
from vfgym.clients.http.chat_sdk import create_completion, is_the_sdks_own, post_options

ASKED: Any = [{"role": "user", "content": "hi"}]
OPTIONS = {"extra_headers": {"X-A": "1"}, "extra_query": {"q": "0"}, "extra_body": {"top_k": 1}, "timeout": 5}


@pytest.fixture
async def sdk(server: CannedServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) as client:
        yield client


@pytest.mark.parametrize("is_wrapped", [False, True])
async def test_both_ways_send_the_same(is_wrapped: bool, sdk: openai.AsyncOpenAI, server: CannedServer) -> None:
    seen = []
    own = sdk.chat.completions.create

    async def create(**kwargs: Any) -> Any:
        seen.append(kwargs)
        return await own(**kwargs)

    if is_wrapped:
        sdk.chat.completions.create = create  # type: ignore[assignment, method-assign]
    response = await create_completion(sdk, "m", ASKED, {"temperature": 0}, dict(OPTIONS))
    assert response.choices[0].message.content == "Oslo."
    assert server.bodies == [{"model": "m", "messages": ASKED, "temperature": 0, "top_k": 1}]
    assert (server.paths, server.headers[0]["X-A"]) == (["/v1/chat/completions?q=0"], "1")
    assert len(seen) == is_wrapped


@pytest.mark.parametrize("asked", [{"stream": True}, {"extra_body": {"stream": True}}])
async def test_a_stream_is_put_together(asked: dict[str, Any]) -> None:
    async def pieces() -> AsyncIterator[Any]:
        for text in ("Os", "lo"):
            yield {"id": "s", "choices": [{"index": 0, "delta": {"content": text}}]}

    async def create(**kwargs: Any) -> Any:
        return pieces()

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    options = {"extra_body": asked["extra_body"]} if "extra_body" in asked else {}
    whole = await create_completion(client, "m", ASKED, {} if options else asked, options)
    assert whole["choices"][0]["message"]["content"] == "Oslo"


def test_options_as_the_sdks_post_calls_them() -> None:
    assert post_options(OPTIONS) == {"headers": {"X-A": "1"}, "params": {"q": "0"}, "extra_json": {"top_k": 1}, "timeout": 5}
    assert post_options({"timeout": None}) == {"timeout": None}


async def test_whose_create_it_is(sdk: openai.AsyncOpenAI) -> None:
    assert is_the_sdks_own(sdk.chat.completions)
    assert not is_the_sdks_own(sdk.chat.completions, "anthropic")
    assert not is_the_sdks_own(SimpleNamespace(create=lambda: None))
    assert not is_the_sdks_own(None)
