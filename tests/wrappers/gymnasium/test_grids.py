"""Arrays that are writing or a map are shown as such: bytes of a terminal, and channels that a game names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

import vfgym
from tests.wrappers.gymnasium.toys import Toy, first_content
from vfgym.wrappers.gymnasium.grids import ChannelText, ScreenText, channel_marks, channel_renderer, text_keys

BYTES = (0, 255)


def screen(*lines: str, width: int = 30) -> np.ndarray[Any, Any]:
    return np.array([[*line.encode().ljust(width, b" ")] for line in lines], np.uint8)


def shown(space: gym.Space[Any], observation: Any, **attributes: Any) -> tuple[str, str]:
    """Return the prompt of a game that observes this, and how a move shows it."""
    drawn = {"metadata": {"render_modes": ["ansi"]}, "render": lambda: "the drawing"}
    env = vfgym.to_chat(lambda: Toy(observation_space=space, seen=lambda: observation, **drawn, **attributes))
    return str(first_content(env)), str(env.step("0")[0][-1].content)


def test_a_terminal_is_shown_as_text_and_alone() -> None:
    """Whatever else is text stands on it, and its colours say nothing; it tells more than the drawing."""
    screens = Box(*BYTES, (24, 30), np.uint8)
    lines = ["You hear a door open.", "", "  |.@.|  ", *[""] * 20, "HP:14(14)"]
    observation = {"tty_chars": screen(*lines), "tty_colors": np.full((24, 30), 7, np.uint8), "message": screen(lines[0], width=40)[0]}
    space = Dict(tty_chars=screens, tty_colors=screens, message=Box(*BYTES, (40,), np.uint8))
    prompt, reply = shown(space, observation, render_mode="ansi")
    assert reply == "\n".join(line.rstrip() for line in lines)
    assert prompt.endswith(f"\n\n{reply}")


def test_bytes_up_to_the_first_zero_are_text_and_codes_of_letters_are_left_out() -> None:
    text, codes = {"chars": (2, 30), "message": (40,), "inv_strs": (2, 40)}, {"glyphs": (2, 30), "inv_glyphs": (2,)}
    members = {**{name: Box(*BYTES, shape, np.uint8) for name, shape in text.items()}, "position": Box(0, 9, (2,), np.int64)}
    space = Dict({**members, **{name: Box(0, 5976, shape, np.int16) for name, shape in codes.items()}})
    message = np.zeros(40, np.uint8)
    message[:4] = [*b"Hi!!"]
    message[5] = 65  # after a zero
    observation = {
        **{"chars": screen("@..", ".>."), "glyphs": np.full((2, 30), 2359, np.int16), "message": message},
        **{"inv_strs": np.zeros((2, 40), np.uint8), "inv_glyphs": np.zeros(2, np.int16), "position": np.array([3, 4])},
    }
    assert shown(space, observation)[1] == "chars:\n@..\n.>.\nmessage: Hi!!\ninv_glyphs: [0, 0]\nposition: [3, 4]"


@pytest.mark.parametrize(("key", "dtype"), [("pixels", np.uint8), ("charset", np.uint8), ("message", np.int64)])
def test_other_arrays_are_no_text(key: str, dtype: Any) -> None:
    space = Dict({key: Box(*BYTES, (3,), dtype), "z": Discrete(2)})
    assert shown(space, {key: np.array([72, 105, 33], dtype), "z": 0})[1] == f"{key}: [72, 105, 33]\nz: 0"


NAMES = {"paddle": 0, "ball": 1, "wall": 2}


def pong() -> np.ndarray[Any, Any]:
    board = np.zeros((2, 3, 3), bool)
    board[0, :, 2] = board[1, 0, 0] = board[1, 2, 1] = board[1, 2, 0] = True
    return board


@pytest.mark.parametrize("holder", ["channels", "game"])
def test_channels_with_names_are_one_map(holder: str) -> None:
    named = {"channels": NAMES} if holder == "channels" else {"game": SimpleNamespace(env=SimpleNamespace(channels=NAMES))}
    prompt, reply = shown(Box(0.0, 1.0, (2, 3, 3), bool), pong(), **named)
    assert reply == "w  w  w\np  .  pb"
    assert "p paddle, b ball, w wall" in prompt


def test_channels_may_be_the_first_axis_and_a_list_of_names() -> None:
    board = np.moveaxis(np.repeat(pong(), 2, axis=1), -1, 0)
    prompt, reply = shown(MultiBinary(board.shape), board.astype(np.int8), channel_names=["paddle", "ball", "pit"])
    assert reply == "i  i  i  i  i  i\np  p  .  .  pb pb"
    assert "p paddle, b ball, i pit" in prompt


@pytest.mark.parametrize("names", [3, {"a": 0, "b": 1, "c": 2, "d": 3}, {"paddle": 0, "ball": 1, "wall": 5}, ["a", "a", "b"], None])
def test_without_a_name_for_each_channel_there_is_no_map_but_a_warning(names: Any) -> None:
    with pytest.warns(UserWarning, match="18 numbers of an observation have no labels"):
        assert "False" in shown(Box(0.0, 1.0, (2, 3, 3), bool), pong(), channels=names)[1]


@pytest.mark.parametrize(
    ("key", "is_text"),
    [
        *((name, True) for name in ("chars", "descriptions", "letters", "message", "screen_text", "strs", "text", "inv_strs", "text_crop")),
        *((name, True) for name in ("tty_chars", "a_b_message", "screen_descriptions_crop", "0_letters")),
        *((name, False) for name in ("mychars", "texts", "chars_", "message_2", "crop")),
    ],
)
def test_keys_say_which_bytes_are_text(key: str, is_text: bool) -> None:
    space = Dict({key: Box(*BYTES, (3,), np.uint8), "z": Discrete(2)})
    assert text_keys(space) == ((key,) if is_text else ())
    assert text_keys(space[key]) == ()
    for shape, dtype in (((2, 2, 2), np.uint8), ((3,), np.int16), ((), np.uint8)):
        assert text_keys(Dict({key: Box(*BYTES, shape, dtype)})) == ()
    assert text_keys(Dict({key: Box(*BYTES, (2, 3), np.uint8)})) == ((key,) if is_text else ())


def test_a_text_alone_needs_no_name_and_empty_texts_are_left_out() -> None:
    one, two = screen("Hi", width=4)[0], np.zeros(4, np.uint8)
    assert ScreenText(("text",))(None, {"text": one}) == "Hi"
    assert ScreenText(("text",))(None, {"text": two}) == ""
    assert ScreenText(("text", "message"), lambda game, seen: f"{game} {seen['z']}")("a game", {"text": one, "message": two, "z": 0}) == (
        "text: Hi\na game 0"
    )


@pytest.mark.parametrize(
    ("space", "names", "renderer"),
    [
        (MultiBinary((2, 3, 4)), list("abcd"), ChannelText(("a", "b", "c", "d"), is_first=False)),
        (MultiBinary((4, 3, 2)), list("abcd"), ChannelText(("a", "b", "c", "d"), is_first=True)),
        (MultiBinary((2, 3, 2)), ("a", "b"), ChannelText(("a", "b"), is_first=False)),
        (Box(0, 1, (2, 3, 4), np.uint8), {"b": 1, "a": 0}, ChannelText(("a", "b"), is_first=True)),
        (
            MultiBinary((3, 3, 32)),
            [f"n{number}" for number in range(32)],
            ChannelText(tuple(f"n{number}" for number in range(32)), is_first=False),
        ),
        (MultiBinary((3, 3, 33)), [f"n{number}" for number in range(33)], None),
        (MultiBinary((2, 3, 4)), list("abc"), None),
        (MultiBinary((2, 3, 4)), ["a", ""], None),
        (MultiBinary((2, 3, 4)), ["a", 1], None),
        (MultiBinary((2, 3, 4)), [], None),
        (MultiBinary((2, 3)), list("ab"), None),
        (Box(0, 2, (2, 3, 4), np.uint8), list("ab"), None),
        (Box(-1, 1, (2, 3, 4), np.int8), list("ab"), None),
        (Box(0, 1, (2, 3, 4), np.float32), list("ab"), None),
        (Discrete(2), list("ab"), None),
    ],
    ids=range(15),
)
def test_channels_of_0_and_1_are_a_map_by_the_first_names_that_fit(space: Any, names: Any, renderer: Any) -> None:
    assert channel_renderer(space, iter([names])) == channel_renderer(space, iter([None, ["a"], names, list("xy")])) if renderer else True
    assert channel_renderer(space, iter([names])) == renderer
    assert channel_renderer(space, iter([])) is None


def test_letters_of_channels_differ_and_the_legend_says_what_they_are() -> None:
    assert channel_marks(["ab", "a", "a_", "__", "b"]) == ("a", "A", "0", "1", "b")
    assert ChannelText(("gold_coin", "_"), is_first=True).legend == (
        "Each cell of the map shows what is there: g gold coin, 0  . Several letters are several things in one cell, and . is nothing."
    )
    assert ChannelText(("a", "b"), is_first=True)(None, np.zeros((2, 1, 2))) == ". ."
