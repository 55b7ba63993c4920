"""Rewards of a game of Gymnasium: numbers, within bounds where these are known."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from vfgym.data import RewardBounds, reward_bounds
from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium.unwrapping import innermost

_KEEP_REWARDS = (gym.ObservationWrapper, OrderEnforcing, PassiveEnvChecker, TimeLimit)
"""Wrappers with which what is known of a game's rewards holds."""


def known_bounds(game: gym.Env[Any, Any], spec: EnvSpec) -> RewardBounds | None:
    """Return the bounds of the rewards of a game of Gymnasium's own; None where its arguments or its wrappers may change them."""
    if not isinstance(spec.entry_point, str) or not spec.entry_point.startswith("gymnasium.envs.") or spec.id not in gym.registry:
        return None
    if not keeps_rewards(game):
        return None
    usual = gym.spec(spec.id).kwargs
    changed = [name for name, value in spec.kwargs.items() if name != "render_mode" and (name not in usual or usual[name] != value)]
    return reward_bounds("gymnasium", spec.id, changed)


def keeps_rewards(game: gym.Env[Any, Any]) -> bool:
    """Say whether the wrappers of a game leave its rewards as they are, as far as that is known."""
    while isinstance(game, gym.Wrapper):
        if not isinstance(game, _KEEP_REWARDS):
            return False
        game = game.env
    return True


_ONE_NUMBER = (
    "make it one number with a wrapper, such as gymnasium.wrappers.TransformReward(env, function)"
    " or mo_gymnasium.wrappers.LinearReward(env, weight=...)"
)


def check_rewards(game: gym.Env[Any, Any], name: str) -> None:
    """Raise if a game rewards moves with several numbers, and no wrapper makes one of them.

    It may say so itself (``reward_space``). One that may be for several agents (``n_agents``, a `Tuple` of actions) plays a first move.

    Raises:
        ConfigurationError: If it does.
    """
    inner = innermost(game)
    space = getattr(inner, "reward_space", None)
    if getattr(space, "shape", None) and keeps_rewards(game):
        raise ConfigurationError(f"{name} rewards moves with a vector (its reward_space is {space}), not with a number: {_ONE_NUMBER}")
    if isinstance(game.action_space, gym.spaces.Tuple) or any(_is_several(getattr(inner, key, 1)) for key in _AGENTS):
        reward = _first_reward(game)
        if isinstance(reward, list | tuple | dict) or np.shape(reward):
            raise ConfigurationError(
                f"{name} rewards a move with {reward!s:.60}, one for each agent, and not with a number: make it a PettingZoo environment,"
                f" of which each agent is a player; or {_ONE_NUMBER}"
            )


_AGENTS = ("n_agents", "num_agents", "n_players", "num_players")
"""Attributes that count those who act."""


def _is_several(count: Any) -> bool:
    return isinstance(count, int | np.integer) and int(count) > 1


def _first_reward(game: gym.Env[Any, Any]) -> Any:
    try:
        game.reset(seed=0)
        game.action_space.seed(0)
        return game.step(game.action_space.sample())[1]
    except Exception:  # whoever plays the game will hear of it
        return 0.0


def no_outcome(played: Any) -> TypeError:
    """Return the error for what `step` returned instead of an outcome."""
    # No `Error`, which would end the episode as if it were part of it.
    is_vector = isinstance(played, tuple) and len(played) == 5 and isinstance(played[1], np.ndarray | list | tuple)
    return TypeError(
        "step of a Gymnasium game must return (observation, reward, terminated, truncated, info), reward being a number and info a dict;"
        f" got {kinds_of(played)}{f'. If the reward is a vector, {_ONE_NUMBER}' if is_vector else ''}"
    )


def kinds_of(returned: Any) -> str:
    """Return what came instead of a tuple of certain kinds."""
    if not isinstance(returned, tuple):
        return type(returned).__name__
    return f"({', '.join(type(member).__name__ for member in returned)})"
