"""Data of any kind as plain JSON, and rows as lines."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym import Usage
from vfgym.results.plain_json import DEEPEST, NotPlain, as_json, json_text, line_of, number_as_text, read_number

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Place:
    row: int
    columns: tuple[int, ...]


@settings(max_examples=15)
@given(PLAIN)
def test_plain_data_stays_as_it_is(value: Any) -> None:
    assert as_json(value) == json.loads(json_text(value)) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        ({3: {4}}, {"3": [4]}),
        (np.float64(0.5), 0.5),
        (np.arange(3), [0, 1, 2]),
        (float("nan"), None),
        (Path("a/b"), "a/b"),
        (ValueError("x"), "ValueError('x')"),
        (Colour.RED, "red"),
        ({"places": [Place(1, (2,))]}, {"places": [{"row": 1, "columns": [2]}]}),
        ({"b", "a"}, ["a", "b"]),
        (np.array([1.5, np.inf]), [1.5, None]),
        (datetime.date(2026, 2, 3), "2026-02-03"),
        (datetime.time(4, 5), "04:05:00"),
        (Usage(1, 0, 2, 3), {"prompt_tokens": 1, "reasoning_tokens": 0, "completion_tokens": 2, "total_tokens": 3}),
    ],
)
def test_other_data_finds_its_form(value: Any, expected: Any) -> None:
    assert as_json(value) == expected


def test_what_has_no_form_is_refused_or_replaced_and_levels_are_bounded() -> None:
    with pytest.raises(NotPlain, match="bytes has no form in JSON"):
        as_json({"a": b"x"})
    assert json.loads(json_text({"a": b"x", "b": float("inf")})) == {"a": "b'x'", "b": None}

    def nested(levels: int) -> Any:
        return [nested(levels - 1)] if levels else 5

    assert as_json(nested(DEEPEST)) == nested(DEEPEST)
    with pytest.raises(NotPlain, match="nested more than 100 levels deep"):
        as_json(nested(DEEPEST + 1))
    assert as_json({"a": [b"x", None], "b": Place(0, ())}, fallback=lambda value: len(value)) == {
        "a": [1, None],
        "b": {"row": 0, "columns": []},
    }
    assert as_json(ValueError, fallback=repr) == repr(ValueError)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 0.0, -0.0, 0.5, 3, None, True, "text", []])
def test_numbers_come_back_as_they_were(number: Any) -> None:
    written = number_as_text(number)
    assert repr(read_number(json.loads(json.dumps(written, allow_nan=False)))) == repr(number)


@pytest.mark.parametrize(("is_indented", "text"), [(False, '{"a": [1, null]}'), (True, '{\n  "a": [\n    1,\n    null\n  ]\n}')])
def test_text_is_strict_and_may_be_indented(is_indented: bool, text: str) -> None:
    for last in (None, math.nan, math.inf):
        assert json_text({"a": [1, last]}, is_indented=is_indented) == text


class Faulty:
    def __repr__(self) -> str:
        return "<faulty>"

    def model_dump(self) -> Any:
        raise RuntimeError("not today")


def test_a_row_is_a_line_whatever_it_holds() -> None:
    row = {"example_id": 0, "reward": math.inf, "counted_reward": -math.inf, "return": math.nan, "metrics": {"m": math.nan}, "m": math.nan}
    places: list[Any] = []
    loop: dict[str, Any] = {}
    loop["self"] = loop
    line = line_of({**row, "info": [1, b"x", math.nan], "own": Faulty(), 3: None, "loop": loop}, places)
    assert "\n" not in line
    assert json.loads(line, parse_constant=pytest.fail) == {
        **{"example_id": 0, "reward": "inf", "counted_reward": "-inf", "return": "nan", "metrics": {"m": "nan"}, "m": "nan"},
        **{"info": [1, "b'x'", None], "own": "<faulty>", "3": None, "loop": "{'self': {...}}"},
    }
    deep = ("loop", "it is nested more than 100 levels deep")
    assert places == [("info[1]", "bytes has no form in JSON"), ("own", "not today"), deep]
    places.clear()
    assert line_of({"example_id": 0, "info": b"x"}, places) == '{"example_id": 0, "info": "b\'x\'"}'
    assert places == [("info", "bytes has no form in JSON")]
    assert line_of({"example_id": 0, "info": None}, places[:0]) == '{"example_id": 0, "info": null}'
