"""Observations as text that a model can read."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces as gs
from gymnasium.spaces import GraphInstance
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.spaces import members
from vfgym.codecs import observation_text, text_renderer, without_colours

RENDERED = [
    (gs.Box(-1, 1, (2,)), np.array([0.5, -1], np.float32), ("x", "y 100%"), "x: 0.5\ny 100%: -1"),
    (gs.Box(-1, 1, (2,)), np.array([0.1, 0.123456789], np.float32), (), "[0.1, 0.123457]"),
    (gs.Box(-1, 1, (2,)), np.array([0.1, 0.2], np.float32), ("one label",), "[0.1, 0.2]"),
    (gs.Box(0, 10**9, (2,), np.int64), np.array([123456789, 0]), (), "[123456789, 0]"),
    (gs.Box(0, 9, (2,), np.int64), np.array([0.5, 1.0]), (), "[0.5, 1.0]"),
    (gs.Box(0, 9, (2, 3), np.int8), np.array([[1, 2, 3], [4, 5, 6]], np.int8), (), "1 2 3\n4 5 6"),
    (gs.Box(0, 9, (2, 1, 2), np.int8), np.array([[[1, 2]], [[3, 4]]], np.int8), (), "1 2\n\n3 4"),
    (gs.Box(0, 9, ()), np.array(2.5, np.float32), (), "2.5"),
    (gs.Box(-1, 1, (2,)), [0.25, 1.0], ("x", "y"), "x: 0.25\ny: 1"),
    (gs.Box(-1, 1, (2,)), np.array([1.0, 2.0, 3.0]), ("x", "y"), "[1, 2, 3]"),
    (gs.MultiBinary(3), np.array([1, 0, 1], np.int8), (), "[1, 0, 1]"),
    (gs.MultiDiscrete([3, 3]), np.array([1, 2]), ("row", "column"), "row: 1\ncolumn: 2"),
    (gs.Discrete(3), np.int64(1), (), "1"),
    (gs.Discrete(2, start=5), np.int64(6), ("closed", "open"), "6 (open)"),
    (gs.Text(9), "a text", (), "a text"),
    (gs.Tuple((gs.Discrete(32), gs.Discrete(2))), (14, 0), ("Sum", "Ace"), "Sum: 14\nAce: 0"),
    (gs.Tuple((gs.Discrete(32), gs.Discrete(2))), np.array([14, 0]), ("Sum", "Ace"), "Sum: 14\nAce: 0"),
    (gs.Tuple((gs.Discrete(32), gs.Discrete(2))), None, ("Sum", "Ace"), "None"),
    (gs.Discrete(2, start=5), np.array(6), ("closed", "open"), "6"),
    (gs.Sequence(gs.Text(9)), ("c, d", "e"), (), '["c, d", e]'),
    (gs.Sequence(gs.Text(9)), ("c", "d", "e"), (), "[c, d, e]"),
    (gs.Tuple((gs.Text(9), gs.Text(9))), ("a, b", ""), (), '["a, b", ""]'),
    (gs.Tuple((gs.Text(9), gs.Text(9))), ("a, b", ""), ("x", "y"), "x: a, b\ny: "),
    (gs.Tuple((gs.Text(9), gs.Text(9))), ("q\nr", " a"), (), '["q\\nr", " a"]'),
    (gs.Tuple((gs.Text(9), gs.Text(9))), ('sāy "go"', "it's é"), (), '["sāy \\"go\\"", it\'s é]'),
    (gs.Tuple((gs.Dict(x=gs.Text(9), y=gs.Text(9)),)), ({"x": "1; y: 2", "y": "3"},), (), '[{x: "1; y: 2"; y: 3}]'),
    (gs.Tuple((gs.Dict(x=gs.Text(9), y=gs.Text(9)),)), ({"x": "1; y: 2"},), (), '[x: "1; y: 2"]'),
    (gs.Tuple((gs.Dict(x=gs.Tuple((gs.Text(9),))),)), ({"x": ("a, b",)},), (), '[x: ["a, b"]]'),
    (gs.Tuple((gs.OneOf((gs.Discrete(3), gs.Text(9))),)), ((1, "a, b"),), (), '[choice 1: "a, b"]'),
    (gs.Dict(x=gs.Text(9), y=gs.Text(9)), {"x": "q\ny: 1", "y": "a, b"}, (), "x:\n  q\n  y: 1\ny: a, b"),
    (None, ["a, b", {"x": "c, d"}, np.array(["e, f"])], (), '["a, b", x: "c, d", ["e, f"]]'),
    (gs.OneOf((gs.Discrete(3), gs.Text(9))), (None, "go"), (), "[None, go]"),
    (gs.OneOf((gs.Discrete(3), gs.Text(9))), (np.array([0, 1]), "go"), (), "[[0, 1], go]"),
    (gs.OneOf((gs.Discrete(3), gs.Text(9))), (7, 1), (), "[7, 1]"),
    (gs.OneOf((gs.Discrete(3), gs.Text(9))), 1, (), "1"),
    (gs.Discrete(3), np.array([2]), ("a", "b", "c"), "[2]"),
    (gs.Tuple((gs.Discrete(32), gs.Box(0, 1, (2,)))), (14, np.array([0.5, 1])), (), "[14, [0.5, 1]]"),
    (gs.Dict(a=gs.Discrete(3), b=gs.Text(9)), {"a": 1, "b": "go"}, (), "a: 1\nb: go"),
    (
        gs.Dict(a=gs.Dict(c=gs.Discrete(3), d=gs.Discrete(3)), b=gs.Box(0, 9, (2, 2), np.int8)),
        {"a": {"c": 1, "d": 2}, "b": np.array([[1, 2], [3, 4]], np.int8)},
        (),
        "a:\n  c: 1\n  d: 2\nb:\n  1 2\n  3 4",
    ),
    (gs.Sequence(gs.Discrete(3)), (np.int64(1), np.int64(2)), (), "[1, 2]"),
    (gs.OneOf((gs.Discrete(3), gs.Text(9))), (np.int64(1), "go"), (), "choice 1: go"),
    (
        gs.Graph(gs.Discrete(3), gs.Box(0, 1, (2,))),
        GraphInstance(np.array([0, 2]), np.array([[0.5, 1]]), np.array([[0, 1]])),
        (),
        "node 0: 0\nnode 1: 2\nedge 0 -> 1: [0.5, 1]",
    ),
    (gs.Box(0, 9, (1,), np.int8), np.array([3], np.int8), (), "[3]"),
    (gs.Box(0, 9, (0,), np.int8), np.zeros(0, np.int8), (), "[]"),
    (gs.Discrete(2, start=5), np.int64(4), ("closed", "open"), "4"),
    (gs.Discrete(2), 0, ("closed",), "0"),
    (gs.Discrete(2), 0, ("closed", "open", "ajar"), "0"),
    (gs.Dict(a=gs.Discrete(3), b=gs.Discrete(3)), {"b": 0, "a": 1}, (), "a: 1\nb: 0"),
    (gs.Dict(a=gs.Discrete(3), b=gs.Discrete(3)), {"b": 0}, (), "b: 0"),
    (gs.Dict(a=gs.Discrete(3)), {"a": 1, "b": 0}, (), "a: 1\nb: 0"),
    (gs.Dict(a=gs.Discrete(3)), 0, (), "0"),
    (gs.Tuple([gs.Discrete(3)] * 2), (1,), ("x", "y"), "[1]"),
    (gs.Tuple([]), (), (), "[]"),
    (gs.Sequence(gs.Discrete(3)), (), (), "[]"),
    (gs.OneOf((gs.Discrete(3), gs.Text(9))), (-1, "go"), (), "[-1, go]"),
    (gs.OneOf((gs.Discrete(3), gs.Text(9))), (0, 1, 2), (), "[0, 1, 2]"),
    (gs.OneOf((gs.Discrete(3), gs.Text(9))), (0, 0), (), "choice 0: 0"),
    (gs.Graph(gs.Discrete(3), None), GraphInstance(np.array([0, 2]), None, None), (), "node 0: 0\nnode 1: 2"),
    (
        gs.Graph(gs.Box(0, 9, (2, 2)), gs.Discrete(3)),
        GraphInstance(np.arange(8.0).reshape(2, 2, 2), np.array([1, 2]), np.array([[0, 1], [1, 0]])),
        (),
        "node 0: {0 1; 2 3}\nnode 1: {4 5; 6 7}\nedge 0 -> 1: 1\nedge 1 -> 0: 2",
    ),
    (None, {"hand": (1, 2), "turn": True}, (), "hand: [1, 2]\nturn: True"),
    (None, (14, 10), ("sum", "dealer"), "sum: 14\ndealer: 10"),
    (None, 3, (), "3"),
    (None, 0.1 + 0.2, (), "0.3"),
]


@pytest.mark.parametrize(("space", "observation", "labels", "text"), RENDERED, ids=lambda value: repr(value)[:30])
def test_small_observations_are_readable(space: Any, observation: Any, labels: tuple[str, ...], text: str) -> None:
    assert observation_text(space, observation, labels) == text
    if space is not None:
        assert pickle.loads(pickle.dumps(text_renderer(space, labels)))(observation) == text


@given(members())
@settings(max_examples=30)
def test_every_observation_has_a_text(member: tuple[gym.Space[Any], Any]) -> None:
    space, observation = member
    assert isinstance(text_renderer(space)(observation), str)
    assert isinstance(observation_text(None, observation), str)


@given(st.lists(st.text('ab ,;:[]{}"\n', max_size=6), min_size=1), st.sampled_from([", ", ",", "; ", "\n"]))
def test_lists_of_other_texts_look_otherwise(texts: list[str], separator: str) -> None:
    """Texts, and what they come to when they are joined and parted again."""
    others = separator.join(texts).split(separator)
    space = gs.Sequence(gs.Text(99))
    assert (observation_text(space, tuple(texts)) == observation_text(space, tuple(others))) == (texts == others)


def test_colours_become_brackets() -> None:
    assert without_colours("S\x1b[41mF\x1b[0mFH\n") == "S[F]FH"
    assert without_colours("\x1b[34;1mR\x1b[0m|\x1b[43m \x1b[0m") == "[R:blue]|[ :yellow]"
    assert without_colours("\x1b[35m\x1b[34;1m\x1b[43mG\x1b[0m\x1b[0m\x1b[0m: ") == "[G:magenta,blue,yellow]: "
    assert without_colours("\x1b[1mbold\x1b[0m\x1b[0m, plain") == "[bold], plain"
    assert without_colours("\x1b[0;41mS\x1b[49mF \x1b[32mG\x1b[39;0mH") == "[S:red]F [G:green]H"
    assert without_colours("\x1b[41;1mS\x1b[22mF\x1b[0;0mG") == "[S][F]G"
    assert without_colours("\x1b[38;5;33mS\x1b[0m\x1b[48;2;1;31;42mF\x1b[0mG") == "[S][F]G"


@pytest.mark.parametrize(("depth", "is_whole"), [(50, True), (51, False)])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_fifty_levels_are_shown(wrap: Any, depth: int, is_whole: bool) -> None:
    value: Any = "end"
    for _ in range(depth):
        value = wrap(value)
    assert [word in observation_text(None, value) for word in ("end", "...")] == [is_whole, not is_whole]


@pytest.mark.parametrize("place", [30, 40, 90, 100])
def test_every_colour_has_its_name(place: int) -> None:
    names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]
    drawing = "".join(f"\x1b[{place + number}m{number}\x1b[0m" for number in range(8))
    assert without_colours(drawing) == "".join(f"[{number}:{name}]" for number, name in enumerate(names))


@pytest.mark.parametrize(
    ("drawing", "plain"),
    [
        *(("\x1b[31;42mA\x1b[39mB\x1b[32mC", "[A:red,green][B:green][C:green,green]"), ("\x1b[31;42mA\x1b[49mB", "[A:red,green][B:red]")),
        *(("\x1b[31mA\x1b[mB", "[A]B"), ("\x1b[31mA\x1b[;mB", "[A]B"), ("\x1b[31m\x1b[0mB", "B"), ("\nA\n\n", "A"), ("", "")),
        *((f"\x1b[{code}mA\x1b[{end}mB", "[A]B") for code in (1, 4, 7) for end in range(22, 30)),
        *((f"\x1b[1mA\x1b[{end}mB", "[A][B]") for end in (21,)),
        *(("\x1b[1234567890mA", "A"), ("\x1b[123456789mA", "[A]"), ("\x1b[38;5;1;42mA\x1b[31mB", "[A:green][B:green,red]")),
        ("\x1b[38;2;1;2;3;42mA\x1b[31mB", "[A:green][B:green,red]"),
        *(("\x1b[38mA\x1b[0mB", "[A]B"), ("\x1b[38;7;31mA\x1b[42mB", "[A:red][B:red,green]")),
        ("\x1b[31m" * 17 + "A\x1b[42mB", f"[A:{','.join(['red'] * 16)}][B:{','.join(['red'] * 15)},green]"),
    ],
)
def test_styles_begin_and_end(drawing: str, plain: str) -> None:
    assert without_colours(drawing) == plain
