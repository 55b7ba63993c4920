"""`to_textarena`: a chat environment with TextArena's own interface."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.agents.base import seat_of
from vfgym.wrappers.textarena.env import TextArenaEnv


def to_textarena(env: gym.Env[Any, Any] | str | EnvSpec) -> Any:
    """Return a chat environment as a ``textarena.Env``: ``reset(num_players, seed)``, ``get_observation()``, ``step(text)``, ``close()``.

    A `TextArenaEnv` becomes the game that it was, for all its players: the same seed and moves give the same observations and rewards
    as the raw game. Any other chat environment becomes a game for one player, whose reward is the episode's total.

    >>> game = to_textarena("textarena/TicTacToe-v0")
    >>> game.reset(num_players=2, seed=0)
    >>> player, told = game.get_observation()
    >>> player, game.step("[4]")
    (0, (False, {}))

    Args:
        env: A chat environment, wrapped or not, or its id. Wrappers around a `TextArenaEnv` are left out: they know one seat only.

    Raises:
        MissingExtra: If textarena is not installed.
        ConfigurationError: If it is not a chat environment.
    """
    if isinstance(env, str | EnvSpec):
        env = gym.make(env, disable_env_checker=True)
    native: Any = importlib.import_module("vfgym.wrappers.textarena.native")
    definition = seat_of(env).definition
    return native.NativeTextArena(definition) if isinstance(definition, TextArenaEnv) else native.OnePlayerTextArena(env)
