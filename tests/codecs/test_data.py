"""JSON data as text, and the shapes in which models write lists and objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vfgym.codecs.data import elements_of, json_text, mapping_of, number_text, quote_data, sequence_of
from vfgym.codecs.problems import ActionNotFound


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-1.0, "-1"),
        (0.0, "0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (1e15, "1000000000000000.0"),
        (1e300, "1e+300"),
        (1e14, "1" + 14 * "0"),
        (-1e15, "-1000000000000000.0"),
        (-999999999999999.0, "-999999999999999"),
    ],
)
def test_whole_numbers_have_no_fraction(number: float, text: str) -> None:
    assert number_text(number) == json_text(number) == text
    assert float(text) == number


@pytest.mark.parametrize("text", ["</action>", "<|end|>", "[THINK]", "\u25c1think\u25b7", "<think>", "[/answer]", "< / move"])
def test_nothing_in_a_text_can_be_taken_for_markup(text: str) -> None:
    written = json_text({"say": [text, "5 < 6", "é"]})
    assert text not in written
    assert "5 < 6" in written
    assert "é" in written
    assert json.loads(written) == {"say": [text, "5 < 6", "é"]}
    assert text not in json_text({text: 1})
    assert json_text([True, None, 1, {"b": 2.0, "c": {}}]) == '[true, null, 1, {"b": 2, "c": {}}]'


@pytest.mark.parametrize(
    ("data", "items"),
    [
        ([], []),
        ((1, 2), (1, 2)),
        (" [1, 2]", [1, 2]),
        ('["a"]', ["a"]),
        ("(1)", None),
        ("[1", None),
        ("1, 2", None),
        ({"a": 1}, None),
        (0, None),
    ],
)
def test_a_list_may_be_in_quotes(data: Any, items: Any) -> None:
    assert sequence_of(data) == items


@pytest.mark.parametrize(
    ("data", "found"), [({}, {}), ('{"a": 1}', {"a": 1}), ('{"a": 1, "a": 2}', None), ("{a: 1}", None), ("[1]", None), (None, None)]
)
def test_an_object_may_be_in_quotes(data: Any, found: Any) -> None:
    assert mapping_of(data) == found


def test_lists_have_as_many_elements_as_they_must() -> None:
    assert elements_of("[1, 2]", 2) == [1, 2]
    assert elements_of([], 0) == []
    for data, count, problem in (
        ([1], 2, "must have 2 elements, got 1"),
        ([1, 2], 1, "must have 1 element, got 2"),
        (3, 1, "must be a list of 1 element, got 3"),
        ([1], 0, "must have 0 elements, got 1"),
    ):
        with pytest.raises(ActionNotFound, match=problem):
            elements_of(data, count)


def test_data_in_messages_are_short() -> None:
    assert quote_data({"é": None}) == '{"é": null}'
    assert quote_data("x" * 58) == f'"{"x" * 58}"'
    assert quote_data("x" * 59) == f'"{"x" * 49}...'
    assert quote_data({1}) == "{1}"
    loop: list[Any] = []
    loop.append(loop)
    assert quote_data(loop) == "[[...]]"
    deep: Any = []
    for _ in range(20_000):
        deep = [deep]
    assert quote_data(deep) == "data that are nested too deeply"
