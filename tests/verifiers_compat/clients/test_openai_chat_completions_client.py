"""The small functions for clients that are derived from the one of chat completions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from verifiers_compat.clients.openai_chat_completions_client import (
    content_to_text,
    get_usage_field,
    handle_openai_overlong_prompt,
    parse_reasoning_content,
)
from verifiers_compat.types import ClientConfig
from verifiers_compat.utils.client_utils import setup_openai_client
from vfgym.errors import OverlongPromptError
from vfgym.model_server import ModelServer


async def test_an_overlong_prompt_is_told() -> None:
    """Other errors pass as they are."""
    with ModelServer(max_model_len=20) as server:
        client = setup_openai_client(ClientConfig(api_base_url=f"{server.url}/v1", api_key="k"))

        @handle_openai_overlong_prompt
        async def ask(model: str, text: str) -> Any:
            return await client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}])

        assert await ask("echo", "hi")
        with pytest.raises(OverlongPromptError) as caught:
            await ask("echo", "many words " * 100)
        assert type(caught.value.__cause__).__name__ == "BadRequestError"
        with pytest.raises(Exception, match="no-such-model") as other:
            await ask("no-such-model", "hi")
        assert type(other.value).__name__ == "NotFoundError"
        await client.close()


def test_small_readers() -> None:
    for usage in ({"prompt_tokens": 3}, SimpleNamespace(prompt_tokens=3)):
        assert (get_usage_field(usage, "prompt_tokens"), get_usage_field(usage, "missing")) == (3, None)
    assert content_to_text([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]) == "a b"
    assert (content_to_text("a"), content_to_text(None)) == ("a", "")


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ({"reasoning": "a", "reasoning_content": "b"}, "a"),
        ({"reasoning": None, "reasoning_content": "b"}, "b"),
        (SimpleNamespace(reasoning_content="b"), "b"),
        ({"reasoning_details": [{}]}, None),
        ({"content": "x"}, None),
    ],
)
def test_reasoning_under_any_name(message: Any, reasoning: str | None) -> None:
    assert parse_reasoning_content(message) == reasoning
