"""Whether a model that reads the prompt of a game can know what its numbers mean.

The rule: up to 20 actions, and up to 4 numbers of an observation or action, can be found out by playing. More must have names or labels, or
somebody must have said something about them. A mask does for actions, since what is legal is told after each move.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from vfgym.codecs import Codec
from vfgym.wrappers.games.images import is_image_space
from vfgym.wrappers.games.masks import MASK, holds_mask
from vfgym.wrappers.gymnasium.descriptions import Description
from vfgym.wrappers.gymnasium.grids import ScreenText
from vfgym.wrappers.gymnasium.rendering import ObservationRenderer, RenderedText

_MOST_UNNAMED = 20
"""Actions that need no names."""

_MOST_UNLABELLED = 4
"""Numbers that need no labels."""


def find_prompt_problems(game: gym.Env[Any, Any], codec: Codec, renderer: ObservationRenderer, described: Description) -> tuple[str, ...]:
    """Return what a player cannot know, each as a sentence that says what to give; empty if all is well.

    Args:
        game: The game.
        codec: How its actions are written, with the names that somebody gave.
        renderer: What shows it.
        described: What the player is told.
    """
    return tuple(filter(None, (_action_problem(game, codec, described), _observation_problem(game, renderer, described))))


def _action_problem(game: gym.Env[Any, Any], codec: Codec, described: Description) -> str:
    problem = "" if described.about_actions else action_problem(game.action_space, codec)
    return "" if not problem or _has_mask(game) else f"{problem} to to_chat, or to vfgym.register_description, or say in rules what they do"


def action_problem(space: gym.Space[Any], codec: Codec) -> str:
    """Return what is wrong with actions that have numbers alone, up to what to give; empty if that can be played."""
    if getattr(codec, "names", None):
        return ""
    if isinstance(space, spaces.Discrete):
        count = int(space.n)
        return f"the {count} actions have numbers and no names: give action_names" if count > _MOST_UNNAMED else ""
    count = _largest_vector(space)
    return f"the {count} numbers of an action have no labels: give action_names" if count > _MOST_UNLABELLED else ""


def _has_mask(game: gym.Env[Any, Any]) -> bool:
    """Say whether a game tells which actions are legal: in its observations or, which only a reset shows, in its info."""
    if holds_mask(game.observation_space):
        return True
    try:
        _, info = game.reset(seed=0)
    except Exception:  # whoever plays the game will hear of it
        return False
    return isinstance(info, Mapping) and MASK in info


def _observation_problem(game: gym.Env[Any, Any], renderer: ObservationRenderer, described: Description) -> str:
    if described.observation_labels or described.about_observations:
        return ""
    problem = ""
    if isinstance(renderer, ScreenText) and renderer.rest is not None:
        problem = observation_problem(renderer.rest.text.space)
    elif isinstance(renderer, RenderedText):
        problem = observation_problem(game.observation_space)
    if not problem:
        return ""
    return f"{problem} to to_chat, or labels or obs_to_text to vfgym.register_description, or say in rules what they are"


def observation_problem(space: gym.Space[Any]) -> str:
    """Return what is wrong with observations that have no labels, up to what to give; empty if they are few, or images."""
    if isinstance(space, spaces.Dict):
        space = spaces.Dict({key: member for key, member in space.spaces.items() if not is_image_space(member)})
    count = 0 if is_image_space(space) else _largest_vector(space)
    return f"{count} numbers of an observation have no labels: give obs_to_text" if count > _MOST_UNLABELLED else ""


def _largest_vector(space: gym.Space[Any]) -> int:
    """Return how many numbers stand side by side without a key between them, in the part of a space that has most of them."""
    match space:
        case spaces.Box() | spaces.MultiBinary() | spaces.MultiDiscrete():
            return math.prod(space.shape)
        case spaces.Dict():
            return max((_largest_vector(member) for key, member in space.spaces.items() if key != "action_mask"), default=0)
        case spaces.Tuple():
            return max(len(space.spaces), *map(_largest_vector, space.spaces))
    return 1
