"""Action masks: where environments give them, how a model is told of them, and which actions they allow.

The kinds of spaces of which Gymnasium defines masks are those that are read here.

A mask allows an action if the space's `sample` may return that action with it. So where a mask allows no value at all of one element of a
larger action, it allows the element's first value, as Gymnasium has it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import iterate

from vfgym.codecs import Codec, observation_text
from vfgym.errors import ConfigurationError

MASK = "action_mask"
"""The key under which environments give a mask: in a Dict observation, or else in the info."""

_MOST_LISTED = 64
"""Legal actions that are told one by one."""

_FIRST_LISTED = 16
"""Legal actions that are told of more."""


def find_mask(observation: Any, info: Mapping[str, Any]) -> Any:
    """Return what an environment gives as a mask, in its observation or in its info; None where it gives none.

    >>> find_mask({"observation": 3, "action_mask": [0, 1]}, {}), find_mask(3, {"action_mask": [1, 1]}), find_mask(3, {})
    ([0, 1], [1, 1], None)
    """
    if isinstance(observation, Mapping) and MASK in observation:
        return observation[MASK]
    return info.get(MASK)


def holds_mask(space: gym.Space[Any]) -> bool:
    """Say whether the observations of a space hold a mask beside something else."""
    return isinstance(space, spaces.Dict) and MASK in space.spaces and len(space.spaces) > 1


def without_mask(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a Dict observation, or its space, holds beside the mask."""
    return {key: member for key, member in members.items() if key != MASK}


def legal_line(codec: Codec, mask: Any) -> str:
    """Return the line that tells a model what a mask allows; empty where there is no mask.

    >>> from vfgym.codecs import codec_for
    >>> legal_line(codec_for(spaces.Discrete(3), ["left", "stay", "right"]), [1, 0, 1])
    'Legal actions: left, right'

    Args:
        codec: The actions. Of a space whose actions are not numbered one by one, the mask is told as it is.
        mask: The mask, as `find_mask` returns it. Of more than 64 legal actions, the first 16 and the number of the others are told.
    """
    if mask is None:
        return ""
    legal = codec.legal_texts(mask)
    if legal is None:
        text = observation_text(None, mask)
        return f"Action mask:\n{text}" if "\n" in text else f"Action mask: {text}"
    return list_legal(legal)


def list_legal(legal: Sequence[str]) -> str:
    """Return the line that lists legal actions. Of more than 64, the first 16 and the number of the others are told."""
    listed = legal if len(legal) <= _MOST_LISTED else [*legal[:_FIRST_LISTED], f"and {len(legal) - _FIRST_LISTED} more"]
    return f"Legal actions: {', '.join(listed) or 'none'}"


COMMANDS = "admissible_commands"
"""The key under which games of commands list what they understand now, in the info."""


def find_commands(space: gym.Space[Any], info: Mapping[str, Any]) -> list[str] | None:
    """Return the commands that a game with text actions understands now; None where it does not say."""
    if space.dtype != np.dtype(str) or COMMANDS not in info:
        return None
    return [*map(str, info[COMMANDS])]


def as_command(text: str, commands: Sequence[str]) -> str:
    """Return the command that a text is, its case, its spaces and final punctuation aside; the text itself, where it is none of them.

    >>> as_command("Open  mailbox", ["look", "open mailbox"]), as_command("dance", ["look"])
    ('open mailbox', 'dance')
    """
    if text in commands:
        return text
    written = _plain_command(text)
    same = [command for command in commands if _plain_command(command) == written]
    return same[0] if len(same) == 1 else text


def _plain_command(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")


def mask_of(space: gym.Space[Any], given: Any) -> Any:
    """Return what an environment gives as a mask in the form in which the space's `sample` takes it.

    >>> mask_of(spaces.MultiDiscrete([2, 3]), [[True, False], [0, 1, 1]])
    (array([1, 0], dtype=int8), array([0, 1, 1], dtype=int8))

    Args:
        space: The space of the actions.
        given: The mask, in which lists may stand for arrays and tuples; None allows all.

    Returns:
        The mask; None where there is none, and for a `Box`, of which Gymnasium has none.

    Raises:
        ConfigurationError: If it is not a mask of this space.
    """
    try:
        return _convert(space, given)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"expected an action mask of {space}, got {given!r}: {error}") from error


def _convert(space: gym.Space[Any], mask: Any) -> Any:
    if mask is None or isinstance(space, spaces.Box):
        return None
    match space:
        case spaces.Discrete():
            return _entries(mask, (int(space.n),))
        case spaces.MultiDiscrete():
            return _nested_entries(mask, space.nvec)
        case spaces.MultiBinary():
            return _entries(mask, space.shape, highest=2)
        case spaces.Text():
            length, characters = mask
            if length is not None and not space.min_length <= length <= space.max_length:
                raise ValueError(f"{length!r} should be a length from {space.min_length} to {space.max_length}")
            return length, None if characters is None else _entries(characters, (len(space.character_list),))
        case spaces.Tuple() | spaces.OneOf():
            return tuple(_convert(member, part) for member, part in zip(space.spaces, mask, strict=True))
        case spaces.Dict():
            if not isinstance(mask, Mapping) or mask.keys() != space.spaces.keys():
                raise ValueError(f"it must have the keys {', '.join(map(str, space.spaces))}")
            return {key: _convert(member, mask[key]) for key, member in space.spaces.items()}
        case spaces.Sequence():
            lengths, of_items = mask
            if lengths is not None and not all(length >= 0 for length in np.atleast_1d(lengths)):
                raise ValueError(f"{lengths!r} should be lengths")
            return np.asarray(lengths) if isinstance(lengths, list | tuple) else lengths, _convert(space.feature_space, of_items)
        case _:
            return mask


def _nested_entries(mask: Any, counts: Any) -> Any:
    if np.ndim(counts) == 0:
        return _entries(mask, (int(counts),))
    return tuple(_nested_entries(part, each) for part, each in zip(mask, counts, strict=True))


def _entries(mask: Any, shape: tuple[int, ...], *, highest: int = 1) -> np.ndarray[Any, np.dtype[np.int8]]:
    entries = np.asarray(mask)
    if entries.shape != shape or not np.isin(entries, range(highest + 1)).all():
        raise ValueError(f"{mask!r} should be whole numbers from 0 to {highest}, of the shape {shape}")
    return entries.astype(np.int8)


def allows(space: gym.Space[Any], mask: Any, action: Any) -> bool:
    """Say whether a mask allows an action.

    >>> space = spaces.MultiBinary(3)  # in its masks, 2 stands for either
    >>> mask = mask_of(space, [0, 1, 2])
    >>> allows(space, mask, np.array([0, 1, 1])), allows(space, mask, np.array([1, 1, 1]))
    (True, False)

    Args:
        space: The space of the actions. Of a `Graph`, whose masks are of one number of nodes, and of a space of somebody's own kind,
            whose masks only it can read, every action is allowed.
        mask: A mask as `mask_of` returns it.
        action: An action of the space.
    """
    if mask is None:
        return True
    match space:
        case spaces.Discrete():
            return _allows_value(mask, int(action) - int(space.start))
        case spaces.MultiDiscrete():
            return all(
                _allows_value(functools.reduce(operator.getitem, place, mask), int(action[place]) - int(space.start[place]))
                for place in np.ndindex(space.shape)
            )
        case spaces.MultiBinary():
            return bool(((mask == 2) | (mask == action)).all())
        case spaces.Text():
            return _allows_text(space, mask, action)
        case spaces.Tuple():
            return all(map(allows, space.spaces, mask, action))
        case spaces.OneOf():
            choice, value = action
            return allows(space.spaces[choice], mask[choice], value)
        case spaces.Dict():
            return all(allows(member, mask[key], action[key]) for key, member in space.spaces.items())
        case spaces.Sequence():
            lengths, of_items = mask
            items = list(iterate(space.stacked_feature_space, action) if space.stack else action)
            is_long_enough = lengths is None or len(items) in np.atleast_1d(lengths)
            return is_long_enough and all(allows(space.feature_space, of_items, item) for item in items)
        case _:
            return True


def _allows_value(entries: Any, index: int) -> bool:
    return bool(entries[index]) or (index == 0 and not entries.any())


def _allows_text(space: spaces.Text, mask: Any, text: str) -> bool:
    length, characters = mask
    if characters is not None:
        if not characters.any():
            return not text
        if not all(characters[space.character_index(character)] for character in text):
            return False
    return length is None or len(text) == length
