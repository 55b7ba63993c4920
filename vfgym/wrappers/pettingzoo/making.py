"""Making an environment of PettingZoo: by its id, or with a function; a parallel one becomes one in which agents act in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from vfgym.errors import ConfigurationError, MissingExtra, did_you_mean
from vfgym.foreign import mute_warnings
from vfgym.wrappers.games.session import close_or_log


def make_aec(made_by: str | Callable[..., Any], options: dict[str, Any], draws: bool) -> Any:
    """Return an environment of the AEC kind.

    Args:
        made_by: An id of PettingZoo's registry, or a function that makes an environment.
        options: Arguments with which it is made.
        draws: Whether one of the registry is made to draw pictures, if it can.

    Raises:
        ConfigurationError: If there is no such environment, or it is not one of PettingZoo.
        MissingExtra: If PettingZoo is not installed.
    """
    try:
        import pettingzoo
    except ImportError as error:
        raise MissingExtra("pettingzoo", "PettingZooGame") from error
    from pettingzoo.env_registry.exceptions import FailedToImport, PettingZooRegistryError
    from pettingzoo.env_registry.registration import aec_registry, parallel_registry
    from pettingzoo.utils.conversions import parallel_to_aec

    try:
        if isinstance(made_by, str):
            kind = "parallel" if made_by in _as_written(parallel_registry) - _as_written(aec_registry) else "aec"
            with mute_warnings():  # of spaces whose limits lose precision, and of modules that are compiled now
                env = pettingzoo.make(kind, made_by, **options)
                if draws and "render_mode" not in options and "rgb_array" in env.metadata.get("render_modes", ()):
                    close_or_log(env)
                    env = pettingzoo.make(kind, made_by, **options, render_mode="rgb_array")
        else:
            env = made_by(**options)
    except FailedToImport as error:
        raise ConfigurationError(f"PettingZoo cannot make {made_by!r}: {error}") from error
    except PettingZooRegistryError as error:  # whose text lists the whole registry
        ids = sorted(_as_written(aec_registry) | _as_written(parallel_registry))
        raise ConfigurationError(f"PettingZoo has no environment {made_by!r}.{did_you_mean(str(made_by), ids)}") from error
    if isinstance(env, pettingzoo.ParallelEnv):
        with mute_warnings():  # of an environment without a render mode
            env = parallel_to_aec(env)
    if not isinstance(env, pettingzoo.AECEnv):
        raise ConfigurationError(f"PettingZooGame plays PettingZoo's environments, got {type(env).__name__}")
    if not getattr(env, "possible_agents", None):
        raise ConfigurationError(f"{env} does not say who plays it: it needs possible_agents, all the agents that may appear")
    return env


def _as_written(registry: Iterable[str]) -> set[str]:
    """Return the ids of a registry of PettingZoo, as one asks for them."""
    return {f"{name}_{version}" for name, _, version in (each.rpartition("-") for each in registry)}
