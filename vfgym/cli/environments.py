"""Finding and making environments by their ids."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from vfgym.agents import seat_of
from vfgym.data import gymnasium_environments, reasoning_gym_datasets
from vfgym.envs.face import EpisodeFace
from vfgym.errors import ConfigurationError
from vfgym.evaluation.replicas import make_env
from vfgym.registration import nearest_ids


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
    namespace, _, name = env_id.rpartition("/")
    game = gymnasium_environments().get(name) if namespace == "gymnasium" else None
    dataset = reasoning_gym_datasets().get(name.rpartition("-v")[0]) if namespace == "reasoning-gym" else None
    if game is not None:
        return f"game of Gymnasium's {game['group']}, {game['action_space'].lower()} actions"
    if dataset is not None:
        return f"reasoning tasks: {dataset['category']}"
    return str(gym.spec(env_id).entry_point)
