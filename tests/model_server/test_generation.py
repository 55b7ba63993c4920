"""From a reply to what was generated: stop sequences, limits, counts and pieces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model_server.asked import BODIES, CALLS, CHAT_TOOL, HELLO, post, says
from vfgym import ToolCall, Usage
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer, Reply
from vfgym.model_server.generation import Generation, generate


@pytest.mark.parametrize(
    ("path", "limit", "finish"),
    [
        *(("/v1/chat/completions", "max_tokens", "length"), ("/v1/chat/completions", "max_completion_tokens", "length")),
        *(("/v1/chat/completions/tokens", "max_tokens", "length"), ("/v1/completions", "max_tokens", "length")),
        *(("/v1/responses", "max_output_tokens", "incomplete"), ("/v1/messages", "max_tokens", "max_tokens")),
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


def made(reply: Reply, **options: Any) -> Generation:
    return generate(reply, **{"prompt_tokens": 10, "max_tokens": None, "stops": (), **options})


CALL = ToolCall("c1", "add", "{}")


@pytest.mark.parametrize(
    ("reply", "options", "text", "finish", "stop"),
    [
        (Reply("abcabc"), {}, "abcabc", "stop", None),
        (Reply("abcabc"), {"stops": ["c", "b"]}, "a", "stop", "b"),
        (Reply("abcabc"), {"stops": ["x"]}, "abcabc", "stop", None),
        (Reply("abc", [CALL]), {"stops": ["c"]}, "ab", "stop", "c"),
        (Reply("abc", [CALL]), {}, "abc", "tool_calls", None),
        (Reply("abc", finish_reason="content_filter"), {}, "abc", "content_filter", None),
        (Reply("abc"), {"max_tokens": 4}, "abc", "stop", None),
        (Reply("abc"), {"max_tokens": 3}, "abc", "length", None),
        (Reply("abc"), {"max_tokens": 1}, "a", "length", None),
        (Reply("abcabc"), {"stops": ["bc", "b"]}, "a", "stop", "bc"),
        (Reply("abc"), {"stops": ["a"]}, "", "stop", "a"),
        (Reply("abc", finish_reason="content_filter"), {"stops": ["c"]}, "ab", "stop", "c"),
        (Reply("abc", finish_reason="length"), {}, "abc", "length", None),
        (Reply("abc"), {"stops": ["c"], "max_tokens": 2}, "ab", "stop", "c"),
        (Reply("abc"), {"stops": ["c"], "max_tokens": 1}, "a", "length", None),
        (Reply(""), {"stops": ["c"]}, "", "stop", None),
        (Reply(None), {"stops": ["c"]}, None, "stop", None),
        (Reply(""), {}, "", "stop", None),
        (Reply(None), {}, None, "stop", None),
    ],
)
def test_where_an_answer_ends(reply: Reply, options: Any, text: str | None, finish: str, stop: str | None) -> None:
    generation = made(reply, **options)
    assert (generation.text, generation.finish_reason, generation.stop_sequence) == (text, finish, stop)
    assert generation.is_whole is (finish != "length")
    assert list(generation.calls) == list(reply.tool_calls if stop is None else ())
    assert generation.usage.completion_tokens == len(generation.token_ids) == len(generation.logprobs)
    assert generation.usage.total_tokens == 10 + len(generation.token_ids)
    assert "".join(piece.text for piece in generation.pieces() if piece.kind == "text") == (text or "")


def test_what_a_reply_says_itself_is_told() -> None:
    usage = Usage(0, 0, 0, 0)
    generation = made(Reply("abc", token_ids=[7, 8], logprobs=[-1.0, -2.0, -3.0], usage=usage))
    assert (generation.token_ids, generation.logprobs, generation.usage) == ([7, 8], [-1.0, -2.0], usage)
    stopped = made(Reply("abc", token_ids=[7, 8]), stops=["c"])
    assert stopped.token_ids == made(Reply("ab"), stops=["c"]).token_ids[:2] == [97, 98]
    cut = made(Reply("abc", token_ids=[7, 8], logprobs=[-1.0, -2.0]), max_tokens=1)
    assert (cut.token_ids, cut.logprobs, cut.finish_reason) == ([7], [-1.0], "length")
    with pytest.raises(ConfigurationError, match="each of its 2 tokens, got 1"):
        _ = made(Reply("abc", token_ids=[7, 8], logprobs=[-1.0])).logprobs


def test_pieces_hold_all_tokens_but_the_end() -> None:
    generation = made(Reply("some text", [CALL, ToolCall("c2", "sub", "")], "some reasoning"))
    pieces = list(generation.pieces())
    assert sum(piece.num_tokens for piece in pieces) == len(generation.token_ids) - 1
    assert [(piece.call, piece.text) for piece in pieces if piece.kind == "arguments"] == [(0, "{}")]
    assert [piece.call for piece in pieces if piece.kind == "call"] == [0, 1]
    assert generation.usage.reasoning_tokens == len("some reasoning")
