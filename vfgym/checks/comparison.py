"""What checks compare with: values to the bit, and the error for those that differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

Promise: TypeAlias = tuple[str, Callable[[], str]]
"""What is promised, and a function that returns a detail if it holds and raises `Broken` if not."""


class Broken(Exception):
    """A promise does not hold."""


def same(one: Any, other: Any) -> bool:
    """Say whether two values are the same bits of the same types; unlike with ``==``, NaN is NaN and 0.0 is not -0.0.

    >>> same({"a": [float("nan")]}, {"a": [float("nan")]}), same(1, 1.0), same(0.0, -0.0)
    (True, False, False)
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return bool(one.dtype == other.dtype and one.shape == other.shape and _bits(one) == _bits(other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (one != one and other != other) or (one == other and math.copysign(1.0, one) == math.copysign(1.0, other))
    return bool(one == other)


def _bits(value: np.ndarray[Any, Any] | np.generic) -> Any:
    return value.tolist() if value.dtype == object else value.tobytes()  # the bytes of objects are their addresses


def expect_same(what: str, given: Any, expected: Any, where: str) -> None:
    """Raise `Broken` if what was given differs from what was expected.

    Args:
        what: What is compared, for the message.
        given: What the environment gave.
        expected: What it was made of gives.
        where: When that was, for the message.
    """
    if not same(given, expected):
        raise Broken(f"{what} {where} should be {expected!r:.150}, and is {given!r:.150}")
