"""What is the same to the bit, and what is said where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vfgym.checks.comparison import Broken, expect_same, same

NAN = float("nan")


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, "", "text", (), [], {}, 0.0, -0.0, NAN, float("inf")),
        *({"a": [1, (2, NAN)]}, np.array([1.0, NAN]), np.float32(NAN), np.array([[1, 2]], np.int8), np.array(["x", None], object)),
    ],
    ids=repr,
)
def test_a_value_is_the_same_as_its_like(value: Any) -> None:
    copied = value.copy() if isinstance(value, np.ndarray | dict | list) else value
    assert same(value, copied)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[(0, 0.0), (1, True), (0.0, -0.0), (NAN, 0.0), (None, 0), ([], ()), ([1], [1, 2]), ([1, 2], [2, 1]), ({"a": 1}, {"b": 1})],
        *[({"a": 1}, {"a": 1, "b": 2}), ({"a": [0.0]}, {"a": [-0.0]}), (np.array([1.0]), np.array([1.0], np.float32))],
        (np.array([1, 2]), np.array([[1, 2]])),
        (np.array([0.0]), np.array([-0.0])),
        *[(np.array(["x", 1], object), np.array(["x", 2], object)), (np.int64(1), np.int32(1)), (np.int64(1), 1), ("a", "b")],
    ],
    ids=repr,
)
def test_what_differs_in_type_shape_order_or_bits_is_not_the_same(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not same(other, one)
    assert not same([one], [other])


def test_what_differs_is_named_with_its_place() -> None:
    expect_same("the reward", 1.0, 1.0, "in turn 3")
    with pytest.raises(Broken, match=r"^the reward in turn 3 should be 2.0, and is 1.0$"):
        expect_same("the reward", 1.0, 2.0, "in turn 3")
    with pytest.raises(Broken) as long:
        expect_same("the text", "x" * 1000, "y" * 1000, "")
    assert len(str(long.value)) < 400
