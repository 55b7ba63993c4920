"""What is given to a vector environment, checked before any environment moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate

from vfgym.envs.seat import as_response
from vfgym.errors import ConfigurationError, InvalidAction
from vfgym.spaces import MessageSpace
from vfgym.tasks import as_integer


def as_autoreset_mode(value: AutoresetMode | str) -> AutoresetMode:
    """Return a mode given as itself or by its name in Gymnasium ("SameStep")."""
    try:
        return AutoresetMode(value)
    except ValueError:
        known = ", ".join(f"{mode} ({mode.value!r})" for mode in AutoresetMode)
        raise ConfigurationError(f"autoreset_mode must be one of {known}; got {value!r}") from None


def check_group_size(group_size: int, num_envs: int, autoreset_mode: AutoresetMode) -> None:
    """Raise if environments cannot be grouped so."""
    if num_envs % group_size:
        raise ConfigurationError(f"num_envs must be a multiple of group_size: {num_envs} is not one of {group_size}")
    if group_size > 1 and autoreset_mode is not AutoresetMode.SAME_STEP:
        raise ConfigurationError(
            f"group_size={group_size} needs autoreset_mode=AutoresetMode.SAME_STEP: a group begins its next task in the step in which the"
            " last of it ends"
        )


def check_factories(factories: Sequence[Any], num_envs: int | None) -> None:
    """Raise if a list is not of functions that make so many environments."""
    if not factories:
        raise ConfigurationError("a list of functions that make environments must not be empty")
    for factory in factories:
        if not callable(factory):
            raise ConfigurationError(f"a list must have functions that make environments, got {type(factory).__name__} in it")
    if num_envs not in (None, len(factories)):
        raise ConfigurationError(f"num_envs={num_envs}, and there are {len(factories)} functions that make environments")


def as_actions(actions: Any, space: gym.Space[Any], count: int) -> list[Any]:
    """Return the actions for several environments, one for each.

    Args:
        actions: What was given.
        space: The action space of the whole vector where the actions of one environment are not messages; else that of one.
        count: How many environments there are to act in.
    """
    if isinstance(actions, str | bytes | Mapping) or not isinstance(actions, Iterable):
        raise InvalidAction(f"actions must be a list with one for each of {count} environments, got one {type(actions).__name__}")
    found = list(actions if isinstance(space, MessageSpace) else iterate(space, actions))
    if len(found) != count:
        raise InvalidAction(f"actions must be as many as environments: expected {count}, got {len(found)}")
    return found


def refuse_action(index: int, action: Any, space: gym.Space[Any], *, is_played: bool) -> None:
    """Raise what is wrong with an action that is not in the space. An environment that plays none in this step takes None, too."""
    if action is None and not is_played:
        return
    if not isinstance(space, MessageSpace):
        raise InvalidAction(f"environment {index}: the action must be a member of {space}, got {action!r}")
    try:
        as_response(action)
    except InvalidAction as error:
        raise InvalidAction(f"environment {index}: {error}") from None


def as_ids(ids: Any, num_envs: int) -> list[int]:
    """Return the ids of environments as a list of different ones."""
    if not isinstance(ids, Sequence | np.ndarray) or isinstance(ids, str | bytes):
        raise ConfigurationError(f"ids must be a list of environments' numbers, such as infos['env_id'], got {type(ids).__name__}")
    found = []
    for given in ids:
        index = as_integer(given)
        if index is None or not 0 <= index < num_envs:
            raise ConfigurationError(f"there is no environment {given!r}: ids are integers from 0 to {num_envs - 1}")
        found.append(index)
    if len(set(found)) != len(found):
        raise ConfigurationError(f"ids must name each environment once, got {found}")
    if not found:
        raise ConfigurationError("ids must name an environment, got none")
    return found


def as_seeds(seed: Any, num_envs: int, group_size: int) -> list[int | None]:
    """Return the seed of each environment; that of a group is its first one's.

    Args:
        seed: None, an integer for the first environment (the others get the next ones; a group has one), or a list of seeds.
        num_envs: How many environments there are.
        group_size: How many of them have one seed.
    """
    number = None if isinstance(seed, np.ndarray) and seed.ndim else as_integer(seed)
    if seed is None:
        return [None] * num_envs
    if number is not None:
        return [number + index // group_size for index in range(num_envs)]
    if not isinstance(seed, Sequence | np.ndarray) or isinstance(seed, str | bytes):
        raise ConfigurationError(f"seed must be an integer, a list with one for each environment, or None; got {seed!r}")
    seeds = [None if each is None else as_integer(each) for each in seed]
    if any(number is None and given is not None for number, given in zip(seeds, seed, strict=True)):
        raise ConfigurationError(f"seeds must be integers or None, got {seed!r}")
    if len(seeds) != num_envs:
        raise ConfigurationError(f"a list of seeds must have one for each environment: expected {num_envs}, got {len(seeds)}")
    _check_groups_agree("seed", seeds, group_size)
    return seeds


def as_options(options: Any, num_envs: int, group_size: int) -> tuple[list[Mapping[str, Any] | None], np.ndarray[Any, Any] | None]:
    """Return the reset options of each environment, and the mask of those that are reset; None where all are.

    Args:
        options: None, a dict for all (with ``reset_mask``, say), or a list with a dict or None for each environment.
        num_envs: How many environments there are.
        group_size: How many of them have the same options.
    """
    if not isinstance(options, list | tuple):
        if not isinstance(options, Mapping | None):
            raise ConfigurationError(f"reset options must be a dict, or a list with one for each environment; got {type(options).__name__}")
        mask = None if options is None else options.get("reset_mask")
        if options is not None and "reset_mask" in options:
            _check_mask(mask, num_envs, group_size)
            options = {name: option for name, option in options.items() if name != "reset_mask"}
        return [options] * num_envs, mask
    if len(options) != num_envs:
        raise ConfigurationError(f"a list of options must have one for each environment: expected {num_envs}, got {len(options)}")
    for index, each in enumerate(options):
        if not isinstance(each, Mapping | None):
            raise ConfigurationError(f"environment {index}: reset options must be a dict or None, got {type(each).__name__}")
        if each is not None and "reset_mask" in each:
            raise ConfigurationError("reset_mask is for the whole vector: give one dict of options, not a list")
    _check_groups_agree("reset options", options, group_size)
    return list(options), None


def _check_mask(mask: Any, num_envs: int, group_size: int) -> None:
    if not isinstance(mask, np.ndarray) or mask.shape != (num_envs,) or mask.dtype != np.bool_:
        came = f"{mask.dtype} of shape {mask.shape}" if isinstance(mask, np.ndarray) else type(mask).__name__
        raise ConfigurationError(f"options['reset_mask'] must be a numpy array of {num_envs} booleans, got {came}")
    if not mask.any():
        raise ConfigurationError("options['reset_mask'] must choose an environment, and all of it is False")
    _check_groups_agree("options['reset_mask']", mask.tolist(), group_size)


def _check_groups_agree(what: str, values: Sequence[Any], group_size: int) -> None:
    for first in range(0, len(values), group_size):
        members = values[first : first + group_size]
        if any(value != members[0] for value in members):
            last = first + group_size - 1
            raise ConfigurationError(f"{what}: environments {first} to {last} are a group, and it must be the same for them; got {members}")
