"""Finding and making environments by their ids."""

from __future__ import annotations

import functools
import importlib.util
import inspect
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from vfgym.agents.base import seat_of
from vfgym.data import (
    TextArenaEnvironment,
    gymnasium_environments,
    pettingzoo_environments,
    reasoning_gym_datasets,
    textarena_environments,
)
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import ConfigurationError
from vfgym.registration import family_of, nearest_ids
from vfgym.runs.replicas import make_env
from vfgym.wrappers.foreign_ids import register_package_of
from vfgym.wrappers.textarena import why_not
from vfgym.wrappers.to_chat import import_id, to_chat


def check_id(env_id: str) -> None:
    """Refuse an id that is not registered.

    Raises:
        ConfigurationError: If it is not; the text names the nearest ids.
        MissingExtra: If it is one of a package that an extra installs, which is not installed.
    """
    if ":" in env_id:  # module:id, which Gymnasium imports as it makes the environment
        return
    register_package_of(env_id)
    try:
        gym.spec(env_id)
    except gym.error.Error as error:
        near = nearest_ids(env_id)
        no_idea = " `vfgym list` shows all ids; give one of another package as module:id."
        hint = f" Did you mean {', '.join(f'`{name}`' for name in near)}?" if near else no_idea
        raise ConfigurationError(f"there is no environment {env_id!r}.{hint}") from error


def make_environment(env_id: str, env_args: dict[str, Any]) -> tuple[gym.Env[Any, Any], EpisodeSeat]:
    """Make an environment, and find the chat environment inside its wrappers. A game of Gymnasium becomes one (`vfgym.to_chat`)."""
    check_id(env_id)
    env: gym.Env[Any, Any] = to_chat(env_id, **env_args) if _is_game(env_id) else make_env(env_id, env_args)
    return env, seat_of(env)


def _is_game(env_id: str) -> bool:
    """Say whether an id is registered for the class of a game, rather than a chat environment's, or a function that makes something."""
    spec = gym.spec(import_id(env_id))
    creator = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    return inspect.isclass(creator) and issubclass(creator, gym.Env) and not issubclass(creator, EpisodeSeat)


def description(env_id: str) -> str:
    """Return one line on a registered environment, without importing it: what it is, and why it cannot run here if it cannot."""
    spec = gym.spec(env_id)
    name = str(spec.kwargs.get("game", spec.kwargs.get("gym")))  # what the package calls it, which not every id is
    family = family_of(spec)
    extra, missing = family, None
    if family == "gymnasium" and name in gymnasium_environments():
        game = gymnasium_environments()[name]
        what, extra = f"game of Gymnasium's {game['group']}, {game['action_space'].lower()} actions", game["group"]
        what += ", cannot go back in an episode" if extra in _COPIED_AS_NEW else ""
    elif family == "textarena" and name in textarena_environments():
        what, missing = _textarena_description(textarena_environments()[name]), why_not(name)
    elif family == "pettingzoo" and name in pettingzoo_environments():
        what = f"game of PettingZoo for {pettingzoo_environments()[name]['players']} players"
    elif family == "reasoning-gym" and name in reasoning_gym_datasets():
        what = f"reasoning tasks: {reasoning_gym_datasets()[name]['category']}"
    else:
        return str(spec.entry_point)
    if not _is_installed(extra):
        missing = f"pip install 'vfgym[{extra}]'"
    return what if missing is None else f"{what} (cannot run here: {missing})"


_COPIED_AS_NEW = ("box2d", "mujoco")
"""Groups of Gymnasium whose games are copied as new ones: `ChatEnv.can_go_back` says so of each, once it is made."""

_PACKAGES = {"box2d": "Box2D", "mujoco": "mujoco", "pettingzoo": "pettingzoo", "reasoning-gym": "reasoning_gym", "textarena": "textarena"}
"""What an extra brings, without which none of its environments can run."""


@functools.cache
def _is_installed(extra: str | None) -> bool:
    """Say whether the package that an extra brings is there; what is not an extra needs none."""
    return extra not in _PACKAGES or importlib.util.find_spec(_PACKAGES[extra]) is not None


_VARIANTS = {"default": "", "raw": ", moves untouched", "train": ", told as in training"}
"""What the variants of an id of TextArena do otherwise."""


def _textarena_description(environment: TextArenaEnvironment) -> str:
    _, least, most = environment["players"]
    players = f"{least} to {most} players" if least < most else f"{least} player{'' if least == 1 else 's'}"
    return f"game of TextArena for {players}{_VARIANTS[environment['variant']]}"
