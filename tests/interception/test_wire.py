"""What the formats share: which fields and parameters pass, pieces of texts, and why a model stopped."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.interception.wire import check_parameters, finish_reason, message_of, plain_data, request_fields, split_into_pieces
from vfgym.messages import AssistantMessage, Response, ResponseMessage, ToolCall, UserMessage

CALLS = [ToolCall("c", "add", "{}")]


@pytest.mark.parametrize(
    ("length", "count", "size"),
    [(0, 0, 0), (1, 1, 1), (16, 1, 16), (17, 2, 16), (16 * 256, 256, 16), (16 * 256 + 1, 241, 17), (10**6, 256, 3907)],
)
def test_a_text_has_256_pieces_at_most_of_16_characters_at_least(length: int, count: int, size: int) -> None:
    text = "".join(chr(0x4E00 + number % 500) for number in range(length))
    pieces = list(split_into_pieces(text))
    assert "".join(pieces) == text
    assert (len(pieces), len(pieces[0]) if pieces else 0) == (count, size)


def test_fields_are_the_formats_own_parameters_or_set_aside() -> None:
    body = {
        **{"model": "m", "stream": True, "stream_options": {}, "metadata": {}, "user": "u", "n": 1},
        **{"messages": [], "tools": None, "temperature": 0, "top_p": None, "zeta": 1, "account": "a"},
    }
    assert request_fields(body, "messages", "tools", "other") == ({"messages": [], "tools": None}, {"temperature": 0}, ("account", "zeta"))
    assert request_fields({"stop": "x", "n": None}, "stop") == ({"stop": "x"}, {}, ())


@pytest.mark.parametrize(("body", "says"), [([], "got list"), (None, "got NoneType"), ({"n": 2}, "n must be 1"), ({"n": 0}, "n must be 1")])
def test_requests_that_do_not_pass(body: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        request_fields(body)


FITS: dict[str, tuple[list[Any], list[Any]]] = {
    **{
        name: ([0, 0.5, -1], [True, "1", None, []])
        for name in ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
    },
    **{name: ([0, 7], [0.5, True, "7"]) for name in ("max_tokens", "max_completion_tokens", "top_k", "seed", "top_logprobs")},
    "logprobs": ([True, False, 5], ["true", 0.5]),
    "reasoning_effort": (["low", ""], [1, {}]),
    "verbosity": (["low"], [1, None]),
    "parallel_tool_calls": ([True, False], [1, "true"]),
    "stop": (["x", [], ["a", "b"]], [7, [7], {"a": 1}]),
    "tool_choice": (
        [
            "auto",
            "none",
            "required",
            "any",
            {"type": "function", "function": {"name": "a"}},
            {"type": "allowed_tools", "allowed_tools": {}},
        ],
        ["add", "", {"type": "function"}, {"type": "function", "function": "a"}, {"type": "web_search", "web_search": {}}, {}],
    ),
    "response_format": ([{"type": "text"}], ["text", []]),
    "logit_bias": ([{}, {"5": -1.5}], [{"5": "x"}, []]),
    "thinking": ([{}, {"type": "enabled", "budget_tokens": 5, "display": "x"}], [{"type": "enabled", "file": "x"}, True]),
}


@pytest.mark.parametrize("name", FITS)
def test_each_parameter_is_what_it_may_be(name: str) -> None:
    good, bad = FITS[name]
    for value in good:
        assert check_parameters({name: value}) == {name: value}
        assert request_fields({name: value})[1] == {name: value}
    for value in bad:
        with pytest.raises(ValueError, match=f"{name} can't be"):
            check_parameters({name: value})


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (AssistantMessage("a"), "stop"),
        (AssistantMessage(None, tool_calls=CALLS), "tool_calls"),
        (ResponseMessage("a", finish_reason="length", is_truncated=True), "length"),
        (ResponseMessage("a", tool_calls=CALLS, finish_reason="stop", is_truncated=False), "stop"),
        (ResponseMessage("a", finish_reason=None, is_truncated=False), "stop"),
    ],
)
def test_why_a_model_stopped(message: Any, reason: str) -> None:
    response = Response("r", 0, "m", None, message)
    assert finish_reason(response) == reason
    assert not message_of(response).keys() & {"finish_reason", "is_truncated", "tokens"}


def test_data_become_fresh_plain_ones() -> None:
    message = UserMessage([{"type": "text", "text": "a"}])
    plain = plain_data((message, 0, None))
    assert plain == [{"role": "user", "content": [{"type": "text", "text": "a"}]}, 0, None]
    assert {type(plain[0]), type(plain[0]["content"])} == {dict, list}
    nested: Any = []
    for _ in range(10**5):
        nested = [nested]
    with pytest.raises(ValueError, match="too deeply"):
        plain_data(nested)
