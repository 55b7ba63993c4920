"""What a tool returned, as the model reads it: text, content parts, or JSON."""

import collections
import dataclasses
import datetime
import enum
import json
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from vfgym.tools import result_content


class Color(enum.Enum):
    RED = "red"


class Loud(str, enum.Enum):  # noqa: UP042
    YES = "yes"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int


class Address(BaseModel):
    street: str


class Foreign:
    def __str__(self) -> str:
        return "a foreign thing"

    def __repr__(self) -> str:
        return "Foreign()"


@settings(max_examples=30)
@given(st.text())
def test_text_stays_as_it_is(text):
    assert result_content(text) == text


@pytest.mark.parametrize("kind", ["text", "image_url", "input_audio"])
def test_content_parts_pass(kind):
    parts = [{"type": kind, kind: {"url": "u"}}, {"type": "text", "text": "hi"}]
    assert (result_content(parts), result_content([MappingProxyType(part) for part in parts])) == (parts, parts)


@pytest.mark.parametrize(
    "value",
    [
        *[[], [{"type": "video", "video": "v"}], [{"type": "text", "text": "hi"}, "text"]],
        *[[{"type": "text", "title": "a record, no part"}], [{"type": ["text"]}], {"type": "text", "text": "hi"}],
    ],
)
def test_what_only_looks_like_parts_is_json(value):
    assert json.loads(result_content(value)) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *[(None, "null"), (5, "5"), (True, "true"), (1.5, "1.5"), (10**30, str(10**30)), (float("nan"), '"NaN"')],
        *[({"a": [1, None], "é": True}, '{"a":[1,null],"é":true}'), ({1: "a", (1, 2): "b"}, '{"1":"a","1,2":"b"}'), ((1, 2), "[1,2]")],
        *[({3}, "[3]"), (range(3), "[0,1,2]"), (collections.deque([1]), "[1]"), ({"a": 1}.values(), "[1]")],
        *[(MappingProxyType({"a": 1}), '{"a":1}'), (Color.RED, "red"), (Loud.YES, "yes"), (Level.HIGH, "3")],
        *[([Color.RED, Loud.YES], '["red","yes"]'), (Point(1), '{"x":1}'), ([Address(street="s")], '[{"street":"s"}]')],
        *[(datetime.date(2024, 2, 29), '"2024-02-29"'), (b"text", '"text"'), (np.int64(3), "3"), (np.float32(0.5), "0.5")],
        *[(np.bool_(True), "true"), ({"grid": np.eye(2, dtype=int)}, '{"grid":[[1,0],[0,1]]}'), (Foreign(), '"a foreign thing"')],
        ([Foreign()], '["a foreign thing"]'),
        (ValueError("no"), '"no"'),
    ],
    ids=repr,
)
def test_everything_else_is_json(value, expected):
    assert result_content(value) == expected


@pytest.mark.parametrize("broken", [b"\xff", "\ud800"])
def test_what_is_not_unicode_is_json_all_the_same(broken):
    assert list(json.loads(result_content({"data": broken, "n": 1}))) == ["data", "n"]


def test_cycles_are_text():
    cycle: list[object] = [1]
    cycle.append(cycle)
    assert result_content(cycle) == "[1, [...]]"


@settings(max_examples=30)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).filter(lambda value: not isinstance(value, str))
)
def test_json_values_survive(value):
    assert json.loads(result_content(value)) == value
