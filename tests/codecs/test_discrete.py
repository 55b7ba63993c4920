"""`DiscreteCodec`: actions by number and by name, in the forms in which models write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given
from hypothesis import strategies as st

from tests.codecs.spaces import same
from vfgym.codecs import ActionNotFound, codec_for
from vfgym.codecs.marks import EMPTY
from vfgym.errors import ConfigurationError


def test_a_long_listing_shows_its_ends() -> None:
    listing = codec_for(gs.Discrete(100), [f"cell {index}" for index in range(100)]).listing()
    assert listing.startswith("0 (cell 0), 1 (cell 1), ")
    assert listing.endswith(", ..., 97 (cell 97), 98 (cell 98), 99 (cell 99)")


@pytest.mark.parametrize("names", [{-1: "left", 0: "stay", 1: "right"}, {"0": "stay", "1": "right", "-1": "left"}])
def test_names_may_be_given_by_number_in_any_order_and_as_json_has_them(names: Any) -> None:
    codec = codec_for(gs.Discrete(3, start=-1), names)
    assert codec.names == ["left", "stay", "right"]
    assert codec.decode("right") == 1


NAMES = st.text("abc xyzAB-+.,:'\"12é", min_size=1, max_size=6) | st.text(min_size=1, max_size=6)


@given(
    st.lists(NAMES.filter(lambda name: name.strip() == name and name not in EMPTY), min_size=1, max_size=12, unique=True),
    st.integers(-5, 5),
)
def test_every_name_is_read_as_its_action(names: list[str], start: int) -> None:
    space = gs.Discrete(len(names), start=start)
    codec = codec_for(space, names)
    for number, name in enumerate(names, start):
        action = codec.decode(name)
        assert same(action, np.int64(number))
        assert codec.encode(action) == name
        if not any(each.strip("+-0.") == str(abs(number)).strip("0") for each in names):
            assert codec.from_json(number) == number
        assert codec.decode(f"I will take <action> {name} </action>!") == number


@given(st.integers(1, 3000), st.integers(-2000, 2000), st.data())
def test_every_number_is_read_as_its_action(n: int, start: int, data: st.DataObject) -> None:
    codec = codec_for(gs.Discrete(n, start=start))
    number = data.draw(st.integers(start, start + n - 1))
    for text in (str(number), f"I will take <action> {number} </action>.", f"My answer: {number}.", f"**Action: {number}**"):
        assert same(codec.decode(text), np.int64(number))
    for beyond in (start - 1, start + n):
        with pytest.raises(ActionNotFound):
            codec.decode(str(beyond))


def test_a_name_that_looks_like_a_number_is_a_name() -> None:
    codec = codec_for(gs.Discrete(2), ["1", "0"])
    assert codec.decode("1") == 0
    assert codec.from_json("1") == 0
    with pytest.raises(ActionNotFound, match="since 1 is the number of one action and the name of another"):
        codec.from_json(1)
    forces = codec_for(gs.Discrete(3), ["2.0", "1.0", "-1.0"])
    assert [forces.from_json(data) for data in (1, 1.0, "1", "-1", "2")] == [1, 1, 1, 2, 0]
    for data in (2, 2.0):
        with pytest.raises(ActionNotFound, match="must be a name in quotes"):
            forces.from_json(data)


def test_a_mask_names_the_legal_texts() -> None:
    mask = np.array([1, 0, 1], np.int8)
    assert codec_for(gs.Discrete(3, start=4)).legal_texts(mask) == ["4", "6"]
    named = codec_for(gs.Discrete(3), ["a", "b", "c"])
    assert named.legal_texts(mask) == ["a", "c"]
    assert named.legal_texts(None) is None
    assert codec_for(gs.MultiBinary(3)).legal_texts(mask) is None
    with pytest.raises(ConfigurationError, match=r"a mask of shape \(3,\).*got shape \(2,\)"):
        named.legal_texts(mask[:2])
