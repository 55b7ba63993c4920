"""`register_description`: what somebody says about a game in words of their own, for every model that plays it."""

from __future__ import annotations

import importlib.metadata
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import get_env_id, parse_env_id

from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium.unwrapping import innermost

ENTRY_POINTS = "vfgym.descriptions"
"""The group of the entry points with which packages describe their games."""


@dataclass(frozen=True)
class RegisteredDescription:
    """What was said about a game; None where nothing was."""

    rules: str | None = None
    action_names: Any = None
    labels: tuple[str, ...] | None = None
    legend: str | None = None
    obs_to_text: Callable[[Any], str] | None = None
    failure_reward: float | None = None


_registered: dict[str | type, RegisteredDescription] = {}


def register_description(
    id_or_class: str | type[gym.Env[Any, Any]],
    *,
    rules: str | None = None,
    action_names: Any = None,
    labels: Sequence[str] | None = None,
    legend: str | None = None,
    obs_to_text: Callable[[Any], str] | None = None,
    failure_reward: float | None = None,
) -> None:
    """Say about a Gymnasium game what a model is told that plays it through `to_chat`.

    What is given goes before what vfgym says of Gymnasium's own games, and before what the game itself declares; arguments of `to_chat` go
    before what is given. What is said about an id with a version goes before what is said about the id without, that before what
    is said about a class, and that before what is said about a base class. A second call for the same id or class replaces the first.

    A package describes its own games with an entry point of the group ``vfgym.descriptions``: the name of a function without arguments that
    calls `register_description`. It is called before the first game is described. In the ``pyproject.toml`` of the package::

        [project.entry-points."vfgym.descriptions"]
        mygames = "mygames.prompts:register"

    >>> register_description("MyMaze-v0", rules="Find the way out.", action_names=["left", "right"], labels=["way to go (m)"])

    Args:
        id_or_class: The id that the game is registered under (``"CliffWalking-v1"``), the same without its version, for all versions, or a
            class of games, for it and its subclasses.
        rules: What the game is about, its rewards, and how an episode ends.
        action_names: One for each action of a `Discrete` space; for others a structure that mirrors the space (`vfgym.codecs.codec_for`).
        labels: What each number of an observation is, with its unit.
        legend: How to read the game's drawing in text, or what `obs_to_text` returns.
        obs_to_text: A function from an observation to text. One that can be pickled, where environments are.
        failure_reward: At most the lowest reward that an episode can have: what a failed rollout counts with.

    Raises:
        ConfigurationError: If an argument is of the wrong kind, or nothing is said.
    """
    if not (isinstance(id_or_class, str) and id_or_class) and not (isinstance(id_or_class, type) and issubclass(id_or_class, gym.Env)):
        raise ConfigurationError(f"register_description takes an id or a class of gymnasium.Env, got {id_or_class!r}")
    for name, text in (("rules", rules), ("legend", legend)):
        if not isinstance(text, str | None):
            raise ConfigurationError(f"{name} must be text, got {text!r}")
    are_labels = labels is None or (not isinstance(labels, str) and len({*labels}) == len(labels))
    if not are_labels or not all(isinstance(label, str) for label in labels or ()):
        raise ConfigurationError(f"labels must be texts, all different, one for each number of an observation; got {labels!r}")
    if obs_to_text is not None and not callable(obs_to_text):
        raise ConfigurationError(f"obs_to_text must be a function from an observation to text, got {obs_to_text!r}")
    if failure_reward is not None and (not isinstance(failure_reward, int | float) or not math.isfinite(failure_reward)):
        raise ConfigurationError(f"failure_reward must be a number, got {failure_reward!r}")
    given = RegisteredDescription(
        rules=rules,
        action_names=action_names,
        labels=None if labels is None else tuple(labels),
        legend=legend,
        obs_to_text=obs_to_text,
        failure_reward=None if failure_reward is None else float(failure_reward),
    )
    if given == RegisteredDescription():
        raise ConfigurationError(
            f"nothing is said about {id_or_class!r}: give rules, action_names, labels, legend, obs_to_text or failure_reward"
        )
    _registered[id_or_class] = given


def registered_descriptions(env: gym.Env[Any, Any]) -> Iterator[RegisteredDescription]:
    """Yield what was said about a game, what goes before the rest last."""
    _load_entry_points()
    keys: list[str | type] = [*reversed(type(innermost(env)).__mro__)]
    if env.spec is not None:
        namespace, name, _ = parse_env_id(env.spec.id)
        keys += [get_env_id(namespace, name, None), env.spec.id]
    yield from (_registered[key] for key in dict.fromkeys(keys) if key in _registered)


_loading = threading.RLock()
_are_loaded = False


def _load_entry_points() -> None:
    """Let installed packages describe their games, once. What they say themselves goes after what was said before."""
    global _are_loaded
    with _loading:
        if _are_loaded:
            return
        _are_loaded = True  # at once: a function that describes a game of its own would come back here
        said = dict(_registered)
        for entry_point in importlib.metadata.entry_points(group=ENTRY_POINTS):
            try:
                entry_point.load()()
            except Exception as error:  # somebody else's mistake, which must not keep anybody from playing
                warnings.warn(
                    f"the descriptions of games in the entry point {entry_point.name} = {entry_point.value} (group {ENTRY_POINTS}) were not"
                    f" read: {type(error).__name__}: {error}",
                    stacklevel=2,
                )
        _registered.update(said)
