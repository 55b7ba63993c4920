"""JSON that others wrote: its levels are bounded, and what is not JSON is a `ValueError`."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from vfgym.bounded_json import MOST_LEVELS, dump_json, is_deep, may_be_deep, parse_json


def nested(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


@pytest.mark.parametrize("encode", [str, str.encode, lambda text: bytearray(text.encode()), lambda text: text.encode("utf-16")])
def test_text_and_bytes_are_read(encode: Any) -> None:
    assert parse_json(encode('{"a": [0, null, ""]}')) == {"a": [0, None, ""]}


@pytest.mark.parametrize("most", [MOST_LEVELS, 3, 1])
def test_levels_are_bounded(most: int) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deepest = opening * (most - 1) + "[]" + closing * (most - 1)
        for text in (deepest, deepest.encode()):
            parse_json(text, most_levels=most)
        for text in (opening + deepest + closing, (opening + deepest + closing).encode()):
            with pytest.raises(ValueError, match=f"more than {most} levels"):
                parse_json(text, most_levels=most)
    assert parse_json("[" + ",".join(["[]"] * 1000) + "]", most_levels=2) == [[]] * 1000
    with pytest.raises(ValueError, match=f"more than {most} levels"):
        parse_json(nested(10**5), most_levels=most)


@pytest.mark.parametrize("text", ["", "{", "nul", "{'a': 1}", "1" * 5000])
def test_what_is_not_json(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse_json(text)
    assert isinstance(caught.value, json.JSONDecodeError) is (len(text) < 5000)


def test_constants_and_numbers_are_read_as_is_said() -> None:
    assert parse_json("[NaN, -Infinity, 1]", parse_constant=str.lower) == ["nan", "-infinity", 1]
    assert parse_json("[0.1, 1e1, 2]", parse_float=Decimal) == [Decimal("0.1"), Decimal("1e1"), 2]
    assert parse_json("Infinity") == float("inf")


def test_data_are_written_compactly_in_ascii_and_as_deep_as_they_are_read() -> None:
    assert dump_json({"a": [1, "é"]}) == '{"a":[1,"\\u00e9"]}'
    deepest = parse_json(nested(MOST_LEVELS))
    assert parse_json(dump_json(deepest)) == deepest
    for value in ([deepest], (deepest,), {"a": deepest}):
        with pytest.raises(ValueError, match="levels deep"):
            dump_json(value)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError):  # noqa: PT011
        dump_json(loop)
    with pytest.raises(TypeError):
        dump_json({1, 2})


@pytest.mark.parametrize(("levels", "deep"), [(0, False), (3, False), (4, True)])
def test_how_deep_data_are(levels: int, deep: bool) -> None:
    data = json.loads(nested(levels) or "0")
    assert is_deep(data, 3) is deep
    assert is_deep([7, {"a": data}, ()], 5) is deep
    mixed = "[{" * (levels // 2) + "[" * (levels % 2)
    texts = [nested(levels), nested(levels, "{", "}"), mixed]
    assert [may_be_deep(text, 3) for each in texts for text in (each, each.encode(), bytearray(each.encode()))] == [deep] * 9
