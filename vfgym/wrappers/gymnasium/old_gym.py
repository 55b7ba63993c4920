"""Games with the interface of Gym before version 0.26, or with nothing but `reset` and `step`, as Gymnasium's.

`reset` returned an observation alone and took no seed (there was a method `seed`), and `step` returned four values.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from vfgym.errors import ConfigurationError


def normalize_reset(out: Any) -> tuple[Any, dict[str, Any]]:
    """Return what `reset` gave as ``(observation, info)``.

    Args:
        out: An observation, or a pair whose second member is a dict. Any other pair is an observation.

    >>> normalize_reset("start"), normalize_reset(("start", {"level": 1})), normalize_reset((3, 4))
    (('start', {}), ('start', {'level': 1}), ((3, 4), {}))
    """
    if isinstance(out, tuple) and len(out) == 2 and isinstance(out[1], dict):
        return out
    return out, {}


def normalize_step(out: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Return what `step` gave as ``(observation, reward, terminated, truncated, info)``.

    Args:
        out: These five, or the four of the older Gym, whose ``info["TimeLimit.truncated"]`` says that a limit ended the episode.

    Raises:
        ConfigurationError: If it is neither.

    >>> normalize_step(("end", 1, True, {}))
    ('end', 1.0, True, False, {})
    """
    if isinstance(out, tuple | list) and len(out) == 5:
        observation, reward, terminated, truncated, info = out
    elif isinstance(out, tuple | list) and len(out) == 4:
        observation, reward, done, info = out
        truncated = bool(done and info.get("TimeLimit.truncated"))
        terminated = done and not truncated
    else:
        came = f"{len(out)} values" if isinstance(out, tuple | list) else type(out).__name__
        raise ConfigurationError(
            "step() must return (observation, reward, terminated, truncated, info), or the older (observation, reward, done, info);"
            f" got {came}"
        )
    return observation, float(reward), bool(terminated), bool(truncated), info


def reset_game(game: Any, seed: int | None, options: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Reset a game of any of these interfaces, and return its first observation and info.

    Args:
        game: The game.
        seed: Given to `reset` if that takes one, else to the method ``seed`` before it, where there is one.
        options: Given to `reset` if there are any.
    """
    given: dict[str, Any] = {} if options is None else {"options": dict(options)}
    if _takes_seed(game):
        given["seed"] = seed
    elif seed is not None and hasattr(game, "seed"):
        game.seed(seed)
    return normalize_reset(game.reset(**given))


def _takes_seed(game: Any) -> bool:
    """Say whether the `reset` of a game takes a seed, as that of Gymnasium does; that of the older Gym does not."""
    # The older Gym's wrappers hand on whatever they are given.
    resets = (game.reset, getattr(getattr(game, "unwrapped", game), "reset", game.reset))
    takes = (_has_argument(getattr(reset, "__func__", reset), "seed") for reset in resets)
    return next((each for each in takes if each is not None), True)


@functools.lru_cache(maxsize=128)  # to read a signature takes longer than many a reset
def _has_argument(reset: Callable[..., Any], name: str) -> bool | None:
    """Say whether a `reset` has an argument; None if it takes any, or does not say."""
    try:
        parameters = inspect.signature(reset).parameters
    except ValueError:  # not written in Python
        return None
    if name in parameters:
        return True
    return None if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()) else False


def has_old_interface(game: Any) -> bool:
    """Say whether a game with `reset` and `step` has another interface than Gymnasium's.

    One that inherits from `gymnasium.Env` has the old one where its `reset` takes no seed, or the argument ``return_info`` of Gym 0.22.
    """
    if not isinstance(game, gym.Env):
        return callable(getattr(game, "reset", None)) and callable(getattr(game, "step", None))
    if isinstance(game, gym.Wrapper):
        return False
    return not _takes_seed(game) or bool(_has_argument(type(game).reset, "return_info"))


class OldGymGame(gym.Env[Any, Any]):
    """A game with an old interface, with that of Gymnasium."""

    def __init__(self, game: Any) -> None:
        """Take a game.

        Raises:
            ConfigurationError: If it does not say what it shows and what can be played.
        """
        for name in ("action_space", "observation_space"):
            if getattr(game, name, None) is None:
                raise ConfigurationError(f"{type(game).__name__} has no {name}, from which to_chat learns how the game is played")
        self.game = game
        """The game itself."""
        self.action_space = convert_space(game.action_space)
        self.observation_space = convert_space(game.observation_space)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the game; without a seed it continues its own random numbers."""
        return reset_game(self.game, seed, options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an action."""
        return normalize_step(self.game.step(action))

    def close(self) -> None:
        """Close the game, where it can be closed."""
        close = getattr(self.game, "close", None)
        if close is not None:
            close()


def convert_space(space: Any) -> gym.Space[Any]:
    """Return a space of the older Gym as the one of Gymnasium that has the same elements; one of Gymnasium as it is.

    Raises:
        ConfigurationError: If there is none.
    """
    if isinstance(space, gym.Space):
        return space
    match type(space).__name__:
        case "Discrete":
            return spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
        case "Box":
            return spaces.Box(space.low, space.high, dtype=space.dtype.type)
        case "MultiBinary":
            return spaces.MultiBinary(space.n)
        case "MultiDiscrete":
            return spaces.MultiDiscrete(space.nvec)
        case "Tuple":
            return spaces.Tuple([convert_space(member) for member in space.spaces])
        case "Dict":
            return spaces.Dict({key: convert_space(member) for key, member in space.spaces.items()})
    raise ConfigurationError(f"to_chat plays games whose spaces are Gymnasium's or the older Gym's, got {space!r}")
