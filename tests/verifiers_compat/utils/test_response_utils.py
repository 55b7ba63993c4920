"""A model's response as the messages and the token data of one turn."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.messages import AssistantMessage
from verifiers_compat.types import Response, ResponseTokens
from verifiers_compat.utils.response_utils import parse_response_message, parse_response_tokens


def _response(tokens: ResponseTokens | None = None) -> Response:
    return Response("r", 0, "m", None, {"content": "hi", "finish_reason": "stop", "tokens": tokens})  # type: ignore[arg-type]


async def test_a_response_is_one_assistant_message() -> None:
    assert await parse_response_message(_response()) == [{"role": "assistant", "content": "hi"}]
    assert type((await parse_response_message(_response()))[0]) is AssistantMessage


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, ([1, 2, 3], [4, 5], False, False)),
        (5, ([1, 2, 3], [4, 5], False, False)),
        (4, ([1, 2, 3], [4], False, True)),
        (2, ([1, 2], [], True, True)),
    ],
)
async def test_token_data_is_cut_to_the_limit(limit: int | None, expected: tuple[Any, ...]) -> None:
    tokens = await parse_response_tokens(_response(ResponseTokens([1, 2, 3], [0, 0, 0], [4, 5], [1, 1], [-0.1, -0.2])), limit)
    assert tokens is not None
    assert (tokens["prompt_ids"], tokens["completion_ids"], tokens["overlong_prompt"], tokens["is_truncated"]) == expected
    assert len(tokens["completion_logprobs"]) == len(tokens["completion_mask"]) == len(tokens["completion_ids"])
    assert await parse_response_tokens(_response(), limit) is None
