"""Finding and making environments by their ids."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from vfgym.agents import seat_of
from vfgym.data import (
    TextArenaEnvironment,
    gymnasium_environments,
    pettingzoo_environments,
    reasoning_gym_datasets,
    textarena_environments,
)
from vfgym.envs.face import EpisodeFace
from vfgym.errors import ConfigurationError
from vfgym.evaluation.replicas import make_env
from vfgym.registration import nearest_ids
from vfgym.wrappers.textarena import why_not


def check_id(env_id: str) -> None:
    """Refuse an id that is not registered.

    Raises:
        ConfigurationError: If it is not; the text names the nearest ids.
    """
    if ":" in env_id:  # module:id, which Gymnasium imports as it makes the environment
        return
    try:
        gym.spec(env_id)
    except gym.error.Error as error:
        near = nearest_ids(env_id)
        hint = f" Did you mean {', '.join(f'`{name}`' for name in near)}?" if near else " `vfgym list` shows all ids."
        raise ConfigurationError(f"there is no environment {env_id!r}.{hint}") from error


def made(env_id: str, env_args: dict[str, Any]) -> tuple[gym.Env[Any, Any], EpisodeFace]:
    """Make an environment, and find the chat environment inside its wrappers."""
    check_id(env_id)
    env = make_env(env_id, env_args)
    return env, seat_of(env)


def description(env_id: str) -> str:
    """Return one line on a registered environment, without importing it."""
    spec = gym.spec(env_id)
    name = str(spec.kwargs.get("game", spec.kwargs.get("gym")))  # what the package calls it, which not every id is
    if spec.namespace == "gymnasium" and name in gymnasium_environments():
        game = gymnasium_environments()[name]
        return f"game of Gymnasium's {game['group']}, {game['action_space'].lower()} actions"
    if spec.namespace == "textarena" and name in textarena_environments():
        return _textarena_description(textarena_environments()[name])
    if spec.namespace == "pettingzoo" and name in pettingzoo_environments():
        return f"game of PettingZoo for {pettingzoo_environments()[name]['players']} players"
    if spec.namespace == "reasoning-gym" and name in reasoning_gym_datasets():
        return f"reasoning tasks: {reasoning_gym_datasets()[name]['category']}"
    return str(spec.entry_point)


_VARIANTS = {"default": "", "raw": ", moves untouched", "train": ", told as in training"}
"""What the variants of an id of TextArena do otherwise."""


def _textarena_description(environment: TextArenaEnvironment) -> str:
    _, least, most = environment["players"]
    players = f"{least} to {most} players" if least < most else f"{least} player{'' if least == 1 else 's'}"
    # Where all of them lack the package, the reason is the same for each, and told when one is made.
    missing = why_not(environment["id"]) if environment["missing"] is not None else None
    return f"game of TextArena for {players}{_VARIANTS[environment['variant']]}{f' (cannot run here: {missing})' if missing else ''}"
