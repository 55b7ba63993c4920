"""OpenEnv's wire protocol: which answers are answers, and what is said of those that are not."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from vfgym.wrappers.openenv.links import StatusError
from vfgym.wrappers.openenv.protocol import (
    ActionRefused,
    ServerError,
    ServerFull,
    ServerReply,
    describe_problems,
    encode,
    encode_any,
    parse,
    read_reply,
    shorten,
)

URL = "http://localhost:8000"


@pytest.mark.parametrize(
    ("data", "reply"),
    [
        ({"observation": {"x": 1}}, ServerReply({"x": 1}, 0.0, False, {})),
        ({"observation": {}, "reward": 2, "done": True, "metadata": {"a": 1}}, ServerReply({}, 2.0, True, {"a": 1})),
        ({"observation": {}, "reward": -0.5, "done": None, "metadata": []}, ServerReply({}, -0.5, False, {})),
        ({"observation": {}, "reward": 0, "done": False}, ServerReply({}, 0.0, False, {})),
    ],
)
def test_answers(data: dict[str, Any], reply: ServerReply) -> None:
    read = read_reply(URL, data)
    assert read == reply
    assert (type(read.reward), type(read.done)) == (float, bool)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "answered without an observation"),
        ({"observation": [1]}, "answered without an observation"),
        *(
            ({"observation": {}, "reward": wrong}, "not a finite number")
            for wrong in ("1", "", [1.0], [], float("nan"), float("inf"), 10**400)
        ),
        *(({"observation": {}, "done": done}, f"done={done!r}, which is neither") for done in ("false", 0, 1)),
    ],
    ids=range(12),
)
def test_what_is_not_an_answer(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ServerError, match=words):
        read_reply(URL, data)


def test_an_error_shows_what_was_answered() -> None:
    long = {"observation": None, "é": "x" * 400}
    with pytest.raises(ServerError) as caught:
        read_reply(URL, long)
    shown = json.dumps(long, ensure_ascii=False)[:300]
    assert str(caught.value) == f"the OpenEnv server {URL} answered without an observation (a JSON object): {shown}..."
    with pytest.raises(ServerError) as caught:
        parse(URL, b"y" * 301)
    assert str(caught.value) == f"the OpenEnv server {URL} answered with something that is not a JSON object: {'y' * 300 + '...'!r}"


def test_what_is_sent_and_read_is_json() -> None:
    assert json.loads(encode({"a": [1, None]})) == {"a": [1, None]}
    endless: dict[str, Any] = {}
    endless["a"] = endless
    for wrong in ({"a": float("nan")}, {"a": object()}, endless):
        with pytest.raises(ActionRefused, match="it is not JSON"):
            encode(wrong)
    assert parse(URL, b'{"a": 1}') == parse(URL, '{"a": 1}') == {"a": 1}
    for text in ("[1]", "<html>", b"\xff", "[" * 100_000):
        with pytest.raises(ServerError, match="not a JSON object"):
            parse(URL, text)


def test_the_problems_of_an_action_are_one_line() -> None:
    errors = [{"loc": ["add", 0], "msg": "Input should be a valid integer"}, {"msg": "too much", "loc": []}, "odd"]
    assert describe_problems(errors) == 'add.0: Input should be a valid integer; too much; "odd"'
    assert describe_problems("no") == '"no"'
    assert describe_problems([]) == ""
    assert describe_problems({"msg": "odd", "loc": None}) == "odd"
    assert describe_problems([{"loc": ["add"]}]) == '{"loc": ["add"]}'


def test_what_a_server_said_is_repeated_in_short() -> None:
    assert shorten("é" * 300) == "é" * 300
    assert shorten(b"a" * 301) == "a" * 300 + "..."
    assert encode_any({"é": 1}) == '{"é": 1}'
    assert encode_any(frozenset({1})) == "frozenset({1})"


@pytest.mark.parametrize("error", [ServerError(URL, "is gone"), ServerFull(URL, "is full"), StatusError(URL, "is ill", 503)])
def test_errors_are_pickled_with_what_they_know(error: ServerError) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is type(error)
    assert (str(copied), vars(copied)) == (str(error), vars(error))
    assert str(ServerError("http://ann:swordfish@host:1", "is gone")) == "the OpenEnv server http://***@host:1 is gone"
