"""Which environment something is of: its id, its class, and the arguments that it was made with."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

from vfgym.envs.identity import Identity, digest_arguments


class Env:
    def __init__(self, data: Any = None, size: int = 3, **others: Any) -> None: ...


@dataclasses.dataclass
class Settings:
    a: int = 1


def first() -> None: ...


def second() -> None: ...


def digest(*args: Any, **kwargs: Any) -> str:
    return digest_arguments(Env, args, kwargs)


LONG = list(range(100))

EQUAL: list[tuple[Any, Any]] = [
    *[([1, "a", None], (1, "a", None)), ({"a": {1, 2}}, {"a": {2, 1}}), (np.arange(3), np.arange(3))],
    *[
        (functools.partial(first, 1), functools.partial(first, 1)),
        (str.lower, str.lower),
        (Settings(), Settings()),
        (first, first),
        (object(), object()),
    ],
    ({"a": 1, "render_mode": "human"}, {"a": 1}),
    *[(LONG, [*LONG[:place], -1, *LONG[place + 1 :]]) for place in (16, 83)],
]
DIFFERENT: list[tuple[Any, Any]] = [
    *[(0, None), (0, ""), ([1, 2], [2, 1]), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}), ({1, 2}, {1, 3}), ({1, 2}, [1, 2])],
    (np.arange(3), np.arange(3.0)),
    (np.arange(4), np.arange(4).reshape(2, 2)),
    (functools.partial(first, 1), functools.partial(first, 2)),
    (str.lower, str.upper),
    (functools.partial(first, a=1), functools.partial(first, a=2)),
    *[(Settings(), Settings(2)), (first, second), (LONG, LONG[:-1]), (LONG, [-1, *LONG[1:]]), (LONG, [*LONG[:-1], -1])],
    (object(), Settings),
    *[(LONG[:32], [*LONG[:place], -1, *LONG[place + 1 : 32]]) for place in (0, 15, 16, 31)],
    *[(LONG, [*LONG[:place], -1, *LONG[place + 1 :]]) for place in (15, 84)],
    *[(0, False), (1, 1.0), ("1", 1), (b"a", "a"), ([], {}), ([], ""), (np.arange(100), np.arange(101)), (np.int64(1), np.int32(1))],
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_arguments_have_one_digest(one: Any, other: Any) -> None:
    assert digest(one) == digest(data=other) != ""


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_ones_have_not(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


def test_defaults_that_are_given_are_the_same_and_swapped_arguments_are_not() -> None:
    assert digest() == digest(None, 3) == digest(size=3)
    assert digest(1, 2) != digest(2, 1)
    assert digest_arguments(Env, (1, 2, 3), {}) == ""


def test_what_is_nested_without_an_end_has_a_digest() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert digest(loop) == digest(loop)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (Identity("a", "Env", "1"), ""),
        (Identity("", "Env", "1"), ""),
        (Identity("b", "Env", "1"), "it is of b, and this is a"),
        (Identity("a", "Other", "1"), "it is of a Other, and this is a Env"),
        (Identity("", "Env", "2"), "it is of a Env that was made with other arguments"),
    ],
)
def test_what_tells_them_apart(other: Identity, difference: str) -> None:
    assert Identity("a", "Env", "1").difference(other) == difference
