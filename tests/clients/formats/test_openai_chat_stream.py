"""The chunks of a stream, put together as the completion that would have come without streaming."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from vfgym.clients.formats.openai_chat_stream import collect_stream


async def collected(*chunks: Any) -> dict[str, Any]:
    async def stream() -> AsyncIterator[Any]:
        for each in chunks:
            yield each

    return await collect_stream(stream())


def chunk(delta: dict[str, Any] | None, **choice: Any) -> dict[str, Any]:
    return {"id": "s1", "created": 5, "model": "sm", "choices": [{"index": 0, "delta": delta, **choice}]}


def call(index: int | None, arguments: str | None, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", None)
    return {"index": index, **fields, "function": {"arguments": arguments, **({"name": name} if name else {})}}


@pytest.mark.parametrize(
    ("deltas", "message"),
    [
        ([{"role": "assistant", "content": ""}], {"content": ""}),
        ([{"content": "Os"}, {"content": None}, {"content": "lo"}, None], {"content": "Oslo"}),
        ([{"reasoning_content": "H"}, {"reasoning_content": "m."}], {"content": None, "reasoning_content": "Hm."}),
        ([{"reasoning": "H"}, {"reasoning": "m."}, {"content": "a"}], {"content": "a", "reasoning": "Hm."}),
        ([{"refusal": "N"}, {"refusal": "o."}], {"content": None, "refusal": "No."}),
        ([{"reasoning_details": [{"text": "a"}]}, {"reasoning_details": [{"text": "b"}]}],
         {"content": None, "reasoning_details": [{"text": "a"}, {"text": "b"}]}),
        ([{"brand_new": 1}, {"brand_new": 2}], {"content": None, "brand_new": 2}),
    ],
)  # fmt: skip
async def test_what_a_message_says(deltas: list[Any], message: dict[str, Any]) -> None:
    whole = await collected(*map(chunk, deltas))
    assert whole == {
        **{"id": "s1", "created": 5, "model": "sm", "object": "chat.completion"},
        "choices": [{"index": 0, "message": {"role": "assistant", **message}}],
    }


async def test_calls_come_in_pieces_and_out_of_order() -> None:
    whole = await collected(
        chunk({"tool_calls": [call(1, "{", id="c2", type="function", name="sub"), call(0, None, id="c1", name="add")]}),
        chunk({"tool_calls": [call(0, '{"a"'), call(1, "}")]}),
        chunk({"tool_calls": [call(0, ": 1}")]}, finish_reason="tool_calls"),
    )
    assert whole["choices"][0]["finish_reason"] == "tool_calls"
    assert whole["choices"][0]["message"]["tool_calls"] == [
        {"type": "function", "id": "c1", "function": {"name": "add", "arguments": '{"a": 1}'}},
        {"type": "function", "id": "c2", "function": {"name": "sub", "arguments": "{}"}},
    ]


async def test_empty_texts_of_later_pieces_replace_no_id_and_no_name() -> None:
    later = {"index": 0, "id": "", "type": "", "function": {"name": "", "arguments": "}"}}
    whole = await collected(
        chunk({"tool_calls": [call(0, "{", id="c1", type="function", name="add")]}),
        chunk({"tool_calls": [later]}),
        chunk({"tool_calls": [{"index": 0}]}),
    )
    assert whole["choices"][0]["message"]["tool_calls"] == [
        {"type": "function", "id": "c1", "function": {"name": "add", "arguments": "{}"}}
    ]


async def test_calls_without_a_number_are_calls_of_their_own() -> None:
    whole = await collected(
        chunk({"tool_calls": [call(None, "{}", id="c1", name="a")]}), chunk({"tool_calls": [call(None, "{}", id="c2")]})
    )
    assert [each["id"] for each in whole["choices"][0]["message"]["tool_calls"]] == ["c1", "c2"]


async def test_tokens_and_usage_are_kept() -> None:
    whole = await collected(
        chunk({"content": "a"}, token_ids=[1], logprobs={"content": [{"logprob": -1.0}]}),
        chunk({"content": "b"}, token_ids=[2, 3], logprobs={"content": None}),
        chunk({"content": "c"}, token_ids=None, logprobs={"content": [{"logprob": -2.0}]}),
        {"id": None, "choices": [], "usage": {"total_tokens": 3}},
    )
    assert (whole["id"], whole["usage"], whole["choices"][0]["token_ids"]) == ("s1", {"total_tokens": 3}, [1, 2, 3])
    assert whole["choices"][0]["logprobs"] == {"content": [{"logprob": -1.0}, {"logprob": -2.0}]}


async def test_choices_are_told_apart_and_ordered() -> None:
    whole = await collected(chunk({"content": "b"}, index=1), chunk({"content": "a"}), chunk({"content": "B"}, index=1))
    assert [(each["index"], each["message"]["content"]) for each in whole["choices"]] == [(0, "a"), (1, "bB")]


async def test_chunks_may_be_the_sdks_and_there_may_be_none() -> None:
    made = ChatCompletionChunk.model_validate({**chunk({"content": "a"}), "object": "chat.completion.chunk"})
    assert (await collected(made))["choices"][0]["message"]["content"] == "a"
    assert await collected() == {"object": "chat.completion", "choices": []}
