"""Random Gymnasium spaces of every kind, nested in each other: for property tests of whatever takes a space.

`spaces(depth)` draws a space, `samples(space)` members of it, `same(a, b)` compares members bit by bit.
"""

from __future__ import annotations

import functools
import json
import string
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import jsonschema
import numpy as np
from gymnasium import spaces as gs
from gymnasium.spaces import GraphInstance
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import strategies as st

from vfgym.codecs import codec_for

Member = tuple[gym.Space[Any], Any]

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64)

CHARSETS = (
    string.ascii_lowercase,
    string.ascii_letters + string.digits,
    "01",
    " \n\tab",
    "\"'`[]{}(),:\\ ",
    "</>actionthk ",
    "äöüß€漢字🙂😀 .",
    "-+.0123456789eE",
    "x",
)

TRAPS = (
    *("<action>", "</action>", "</think>", "", " ", '"', '"a"', "[1]", "Action: a", "```", "null", "{}", "\n", "-0", "<action>a</action>"),
)
"""Texts that mean something to whoever reads a message."""


@st.composite
def discretes(draw: st.DrawFn) -> gs.Discrete[Any]:
    """Discrete spaces of every dtype, also at its ends."""
    dtype = draw(st.sampled_from(INTEGERS))
    info = np.iinfo(dtype)
    n = draw(st.integers(1, 9) | st.integers(1, min(int(info.max), 10**6)))
    start = draw(st.integers(-20, 20) | st.just(int(info.min)) | st.just(int(info.max) - n + 1))
    return gs.Discrete(n, start=min(max(start, int(info.min)), int(info.max) - n + 1), dtype=dtype)


@functools.cache
def shapes(max_dims: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    """Small shapes; vectors most of all."""
    return st.tuples(st.integers(1, 4)) | st.lists(st.integers(1, 3), min_size=1, max_size=max_dims).map(tuple)


@st.composite
def boxes(draw: st.DrawFn) -> gs.Box[Any]:
    """Boxes of every dtype and shape: bounded, half-bounded, unbounded, with bounds of their own for each element."""
    dtype = draw(st.sampled_from((*FLOATS, *FLOATS, *INTEGERS, np.bool_)))
    # `Box.sample` gives a scalar instead of an array for integers without a shape (gymnasium 1.4), so only floats have none here.
    shape = draw(shapes() | st.just(())) if issubclass(dtype, np.floating) else draw(shapes())
    each = draw(st.booleans())
    count = int(np.prod(shape)) if each else 1
    low, high = (np.empty(count, dtype) for _ in range(2))
    for index in range(count):
        low[index], high[index] = draw(_bounds(dtype))
    if not each:
        return gs.Box(low[0] if dtype is not np.bool_ else 0, high[0] if dtype is not np.bool_ else 1, shape, dtype)
    return gs.Box(low.reshape(shape), high.reshape(shape), dtype=dtype)


@st.composite
def _bounds(draw: st.DrawFn, dtype: Any) -> tuple[Any, Any]:
    if dtype is np.bool_:
        return draw(st.sampled_from(((False, True), (False, True), (True, True), (False, False))))
    if issubclass(dtype, np.floating):
        # What Box.sample computes in float64 must not round to infinity, so bounds keep away from the dtype's ends.
        limit = float(np.finfo(dtype).max) / 8
        width = 8 * np.dtype(dtype).itemsize
        # Adding 0.0 makes 0.0 of -0.0: `Box.sample` refuses the bounds 0.0 and -0.0 (gymnasium 1.4).
        numbers = st.sampled_from((-1.0, 0.0, 1.0)) | st.floats(-limit, limit, width=width).map(lambda number: number + 0.0)
        low, high = sorted([draw(numbers), draw(numbers)])
        return dtype(draw(st.sampled_from((low, low, -np.inf)))), dtype(draw(st.sampled_from((high, high, np.inf))))
    info = np.iinfo(dtype)
    # Box.sample computes in float64 and int64, which the ends of 64 bits overflow (gymnasium 1.4).
    largest, smallest = min(int(info.max), 2**53), max(int(info.min), -(2**53))
    low, high = sorted([draw(st.integers(-5, 5) | st.integers(smallest, largest)) for _ in range(2)])
    return dtype(max(low, smallest)), dtype(max(high, smallest))


@st.composite
def multi_discretes(draw: st.DrawFn) -> gs.MultiDiscrete[Any]:
    """MultiDiscrete spaces with one to three axes."""
    dtype = draw(st.sampled_from(INTEGERS))
    shape = draw(shapes())
    count = int(np.prod(shape))
    nvec = np.array(draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))).reshape(shape)
    smallest = 0 if issubclass(dtype, np.unsignedinteger) else -10
    start = np.array(draw(st.lists(st.integers(smallest, 10), min_size=count, max_size=count))).reshape(shape)
    return gs.MultiDiscrete(nvec, dtype, start=draw(st.none() | st.just(start)))


def multi_binaries() -> st.SearchStrategy[gs.MultiBinary]:
    """MultiBinary spaces, by length or by shape."""
    return (st.integers(1, 5) | shapes().map(list)).map(gs.MultiBinary)


@st.composite
def texts(draw: st.DrawFn) -> gs.Text:
    """Text spaces, many of whose members look like something else."""
    charset = draw(st.sampled_from(CHARSETS))
    low = draw(st.integers(0, 3))
    return gs.Text(low + draw(st.integers(0, 12)), min_length=low, charset=charset)


@functools.cache
def fundamentals() -> st.SearchStrategy[gym.Space[Any]]:
    """Spaces that hold no other spaces."""
    return st.one_of(discretes(), boxes(), multi_discretes(), multi_binaries(), texts())


@functools.cache
def spaces(depth: int = 3) -> st.SearchStrategy[gym.Space[Any]]:
    """Spaces of every kind, with at most `depth` levels of nesting."""
    if depth <= 1:
        return fundamentals()
    return st.one_of(fundamentals(), compounds(depth))


@functools.cache
def compounds(depth: int = 3) -> st.SearchStrategy[gym.Space[Any]]:
    """Spaces that hold other spaces, with two to `depth` levels of nesting."""
    members = spaces(depth - 1)
    keys = st.text(string.ascii_letters + " _\"'<é", max_size=5)
    return st.one_of(
        st.lists(members, max_size=3).map(gs.Tuple),
        st.dictionaries(keys, members, max_size=3).map(gs.Dict),
        st.builds(gs.Sequence, members, stack=st.just(False)),
        st.builds(gs.Sequence, members.filter(is_stackable), stack=st.just(True)),
        st.lists(members, min_size=1, max_size=3).map(gs.OneOf),
        st.builds(gs.Graph, discretes() | boxes(), st.none() | discretes() | boxes()),
    )


def is_stackable(space: gym.Space[Any]) -> bool:
    """Say whether Gymnasium can tell how many items were stacked: a tuple or dict without members keeps no count."""
    if isinstance(space, gs.Tuple | gs.Dict):
        members = list(space.spaces.values()) if isinstance(space, gs.Dict) else list(space.spaces)
        return bool(members) and all(map(is_stackable, members))
    return True


def seeded(space: gym.Space[Any], seed: int) -> gym.Space[Any]:
    """Return the space, seeded."""
    space.seed(seed)
    return space


@st.composite
def members(draw: st.DrawFn, depth: int = 3) -> tuple[gym.Space[Any], Any]:
    """A space and a sample of it."""
    space = seeded(draw(spaces(depth)), draw(st.integers(0, 2**31)))
    if isinstance(space, gs.Text) and draw(st.booleans()):
        traps = [trap for trap in TRAPS if space.contains(trap)]
        if traps:
            return space, draw(st.sampled_from(traps))
    return space, space.sample()


def same(one: Any, other: Any) -> bool:
    """Say whether two members of a space are the same: type, dtype, shape, order of keys and every bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list | GraphInstance):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


class Point(gym.Space[Any]):
    """A space of an unknown kind, with JSON of its own."""

    def sample(self, mask: Any = None, probability: Any = None) -> complex:
        return complex(int(self.np_random.integers(9)), 1)

    def contains(self, x: Any) -> bool:
        return isinstance(x, complex) and x.imag == 1

    def to_jsonable(self, sample_n: Any) -> Any:
        return [[point.real, point.imag] for point in sample_n]

    def from_jsonable(self, sample_n: Any) -> Any:
        return [complex(*pair) for pair in sample_n]


def check_round_trip(member: Member) -> None:
    """Raise unless text and JSON give back exactly the action, and the JSON is what the schema says."""
    space, action = member
    codec = codec_for(space)
    text = codec.encode(action)
    assert same(codec.decode(text), action), text
    assert data_equivalence(codec.decode(text), action)
    assert same(codec.decode(f"<think>Which? {text}</think>So <Action>\n{text}</action>"), action), text
    data = json.loads(json.dumps(codec.to_json(action), allow_nan=False))
    assert same(codec.from_json(data), action), data
    schema = json.loads(json.dumps(codec.schema))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data)
