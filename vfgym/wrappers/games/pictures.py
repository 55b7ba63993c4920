"""The picture that a game draws of itself, for ``render_mode="rgb_array"`` of the chat environment around it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from vfgym.foreign import mute_warnings
from vfgym.output.pictures import Picture, as_picture
from vfgym.wrappers.gymnasium.unwrapping import innermost


def draws_itself(game: Any) -> bool:
    """Say whether a game has a picture of itself, in the render mode in which it was made."""
    mode = getattr(game, "render_mode", None)
    return mode == "rgb_array" or (mode == "ansi" and _can_switch(innermost(game)))


def draw_game(game: Any) -> Picture:
    """Return the picture of a game that draws itself.

    A game has one render mode, and one that the model is shown as a drawing in text has ``"ansi"``. It draws its picture in the other
    mode for a moment, so that what the model sees does not depend on whether somebody else looks.
    """
    _draw_off_screen(innermost(game))
    with mute_warnings():
        if game.render_mode == "rgb_array":
            return as_picture(game.render())
        with _in_colours(innermost(game)):
            return as_picture(game.render())


def _can_switch(game: Any) -> bool:
    metadata = getattr(game, "metadata", None)
    modes = metadata.get("render_modes") if isinstance(metadata, Mapping) else None
    return "rgb_array" in (modes or ()) and "render_mode" in getattr(game, "__dict__", ())


def _draw_off_screen(game: Any) -> None:
    """Let MuJoCo draw without a display where there is none: it aborts the process there if nobody says so (mujoco 4.0)."""
    if hasattr(game, "mujoco_renderer") and sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        os.environ.setdefault("MUJOCO_GL", "egl")


@contextmanager
def _in_colours(game: Any) -> Iterator[None]:
    game.render_mode = "rgb_array"
    try:
        yield
    finally:
        game.render_mode = "ansi"
