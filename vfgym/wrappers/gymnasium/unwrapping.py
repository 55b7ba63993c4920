"""The game inside its wrappers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from vfgym.wrappers.gymnasium.old_gym import OldGymGame


def innermost(game: Any) -> Any:
    """Return a game without Gymnasium's wrappers, and without what gives it Gymnasium's interface.

    Not what it calls ``unwrapped``, which may be anything: that of Jumanji's wrapper is not a `gymnasium.Env`.
    """
    while isinstance(game, gym.Wrapper | OldGymGame):
        game = game.env if isinstance(game, gym.Wrapper) else game.game
    return game


def documented_game(game: Any) -> Any:
    """Return the object whose class names and documents a game: what the innermost one calls ``unwrapped``, where that can be stepped.

    That of an adapter is the game of the other library; that of any other game is the game itself.
    """
    inner = innermost(game)
    unwrapped = getattr(inner, "unwrapped", inner)
    return unwrapped if hasattr(unwrapped, "step") else inner
