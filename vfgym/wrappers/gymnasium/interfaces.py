"""The door at which a game of another interface becomes one of Gymnasium's."""

from __future__ import annotations

from typing import Any

from vfgym.wrappers.gymnasium.browsergym import BrowserGame, is_browser
from vfgym.wrappers.gymnasium.old_gym import OldGymGame, has_old_interface
from vfgym.wrappers.gymnasium.rendering import Game
from vfgym.wrappers.gymnasium.text_games import TextGame


def as_gymnasium(made: Any) -> Game:
    """Return a game with the interface of Gymnasium, whichever it has."""
    if is_browser(made):
        return BrowserGame(made)
    if getattr(made, "action_space", None) is None and has_old_interface(made):
        return TextGame(made)
    return OldGymGame(made) if has_old_interface(made) else made
