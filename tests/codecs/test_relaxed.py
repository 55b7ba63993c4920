"""What is almost JSON is read as it is meant; what is not even that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.codecs.relaxed import outermost_brackets, read_json, read_relaxed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(JSON, st.sampled_from([None, 1]))
def test_json_is_read_as_json_is(data: Any, indent: int | None) -> None:
    text = json.dumps(data, indent=indent)
    assert read_json(text) == read_json(f" {text}\n") == read_relaxed(text) == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("steer: 0.5, gas: 1", {"steer": 0.5, "gas": 1}),
        ("steer = 0.5\ngas = 1", {"steer": 0.5, "gas": 1}),
        ("0: 1; 1: 2", {"0": 1, "1": 2}),
        ("(1 2, 3,)", [1, 2, 3]),
        ("(1)", 1),
        ("(1,)", [1]),
        ("()", []),
        ("[]", []),
        ("{}", {}),
        ("[(0, 1), [2]]", [[0, 1], [2]]),
        ("{'move': left, 'say': 'it\\'s \"me\"',}", {"move": "left", "say": 'it\'s "me"'}),
        ("[True, None, FALSE, nullable]", [True, None, False, "nullable"]),
        ("\u22120.5", -0.5),
        ("[go  north, -inf]", ["go  north", -float("inf")]),
        ("1\n2", [1, 2]),
        ("{a: {b: [1]}}", {"a": {"b": [1]}}),
    ],
)
def test_brackets_quotes_and_commas_are_forgiven(text: str, data: Any) -> None:
    assert read_relaxed(text) == data


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[1",
        "1]",
        "{1, 2: 3}",
        "a:",
        "a:,b: 1",
        "a: b: 1",
        ": 1",
        "[1}",
        "a: 1, a: 2",
        "{'a': 1, 'a': 2}",
        '"',
        "'a",
        "{[1]: 2}",
        "a: 1, 2",
        "(" * 66 + ")" * 66,
    ],
)
def test_what_can_be_meant_in_no_way_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- whichever kind
        read_relaxed(text)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[1] 2", "{a: 1}", "[" * 200_000, "[" * 5_000 + "]" * 5_000])
def test_json_of_keys_twice_or_too_many_levels_is_none(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- whichever kind
        read_json(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("From [0, (1)] on :-)", ["[0, (1)]"]),
        ("(1) {2} [3]", ["(1)", "{2}", "[3]"]),
        ("[1) (2)", ["(2)"]),
        ('{"a": "]}", "b": [1]} (', ['{"a": "]}", "b": [1]}']),
        ('"(1)" [2]', ["[2]"]),
        ("((1)", ["(1)"]),
        ("", []),
    ],
)
def test_the_outermost_pairs_of_brackets_are_found(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in outermost_brackets(text)] == parts


@pytest.mark.parametrize("opener", ["[", "(", "{a: "])
def test_sixty_four_levels_of_brackets_are_read(opener: str) -> None:
    closer = {"[": "]", "(": ")", "{a: ": "}"}[opener]
    data = read_relaxed(opener * 64 + "x" + closer * 64)
    levels = 0
    while isinstance(data, list | dict):
        data, levels = (data["a"] if isinstance(data, dict) else data[0]), levels + 1
    assert (data, levels) == ("x", {"[": 64, "(": 0, "{a: ": 64}[opener])
    with pytest.raises(ValueError, match="nested too deeply"):
        read_relaxed(opener * 65 + "x" + closer * 65)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is nothing to read"),
        ("[1", "']' is missing"),
        ("{a: (1}", "'}' closes nothing"),
        ("1]", "']' closes nothing"),
        (": 1", "':' stands after no key"),
        ("= 1", "'=' stands after no key"),
        ("0.5: 1", "':' stands after no key"),
        ("a: b: 1", "':' stands after no key"),
        ("a:, b: 1", "there is no value for 'a'"),
        ("a:; b: 1", "there is no value for 'a'"),
        ("a: 1, b:", "keys without values"),
        ("a: 1, 2", "keys without values"),
        ("a: 1, a: 2", "a key stands there twice"),
        ('[1, "a', "cannot read on from"),
    ],
)
def test_why_a_text_cannot_be_read_is_said(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_relaxed(text)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        *(
            ("0", 0),
            ("0, 0", [0, 0]),
            ('""', ""),
            ("''", ""),
            ("null", None),
            ("none", None),
            ("None", None),
            ("TRUE", True),
            ("false", False),
        ),
        *(
            ("a:\n1", {"a": 1}),
            ("a: 0, b: ''", {"a": 0, "b": ""}),
            ("1; 2", [1, 2]),
            ("(1\n2)", [1, 2]),
            ("(1;)", 1),
            ("{ }", {}),
            ("[,]", []),
        ),
        *(("true: 1", {"True": 1}), (".5, 5., 1e2, +1", [0.5, 5, 100, 1]), ("Infinity", float("inf")), ("1x", "1x")),
    ],
)
def test_nothing_zero_and_empty_are_themselves(text: str, data: Any) -> None:
    read = read_relaxed(text)
    assert (read, type(read)) == (data, type(data))
