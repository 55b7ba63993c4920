"""What an environment declares of its actions and observations: names in enums, mappings and lists, word for word.

A name is taken only where there is exactly one for each element of the space: a wrong one is worse than none.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from gymnasium import spaces

_OF_ACTIONS = ("actions", "Actions", "Action", "action_names", "ACTION_NAMES", "action_meanings", "ACTION_MEANING", "action_map")
_OF_OBSERVATIONS = ("observation_labels", "observation_names", "feature_names", "features")
_PARTS = ("action_type", "game", "env", "_env")
"""Attributes that hold the part of a game which knows its actions."""

_LETTERS = {"n": "no-op", "l": "left", "r": "right", "u": "up", "d": "down", "f": "fire"}
"""What single letters mean where all names are such letters (MinAtar's)."""


def declared_action_names(game: Any, space: spaces.Discrete) -> tuple[str, ...]:
    """Return what an environment calls its actions, in order; empty where it does not say.

    It says so with ``get_action_meanings``, or in an attribute (``actions``, ``Action``, ``action_names``, ``ACTION_MEANING``,
    ``action_map``, ...) of its own, of its ``action_type``, of the game inside of it, or of its module. That is an enum, a mapping from
    numbers to names or from names to numbers, a dataclass of numbers, or a list of names or of members of enums. Members of enums are
    numbered by their values where these are the numbers of the actions, and else by their places: values may be keys of a keyboard.
    ``action_set`` says which of the actions in a longer list there are. Where a game has ``get_available_buttons`` and a ``button_map``,
    an action is the buttons that it presses.

    >>> import enum, types
    >>> keys = enum.Enum("keys", {"UP": 107, "DOWN": 106})
    >>> declared_action_names(types.SimpleNamespace(actions=tuple(keys)), spaces.Discrete(2))
    ('UP', 'DOWN')
    """
    holders = _holders(game)
    declared = [meanings() for holder in holders if callable(meanings := getattr(holder, "get_action_meanings", None))]
    declared += _attributes((*holders, sys.modules.get(type(game).__module__)), _OF_ACTIONS)
    chosen = next((each for each in _attributes((game,), ("action_set", "_action_set")) if _are_places(each)), None)
    found = next(filter(None, (_names_of(value, space, chosen) for value in declared)), ())
    return found or _names_of([" and ".join(pressed) or "no button" for pressed in _pressed(game, holders)], space)


def declared_action_labels(game: Any) -> tuple[str, ...]:
    """Return what an environment calls the numbers of its actions: the buttons that each of them presses. Empty where it does not say."""
    return _buttons(_holders(game))


def declared_labels(game: Any) -> Iterator[tuple[str, ...]]:
    """Yield what an environment calls the numbers of its observations: lists of texts.

    They stand in an attribute (``observation_labels``, ``observation_names``, ``feature_names``, ``features``) of its own or of its
    ``observation_type``.
    """
    for value in _attributes((game, getattr(game, "observation_type", None)), _OF_OBSERVATIONS):
        if isinstance(value, list | tuple) and value and all(isinstance(label, str) for label in value) and len({*value}) == len(value):
            yield tuple(value)


def declared_channels(game: Any) -> Iterator[Any]:
    """Yield what an environment, or a part of it, declares as the channels of its observations."""
    yield from _attributes(_holders(game), ("channels", "channel_names", "CHANNELS"))


def _holders(game: Any) -> tuple[Any, ...]:
    """Return a game, and the parts of it that may know what its actions are called."""
    holders = [game, *_attributes((game,), _PARTS)]
    return (*holders, *_attributes(tuple(holders[1:]), _PARTS))


def _attributes(holders: tuple[Any, ...], names: tuple[str, ...]) -> list[Any]:
    found = []
    for holder in holders:
        for name in names:
            try:
                value = getattr(holder, name, None)
            except Exception:  # a property of somebody's that needs a game that has begun
                continue
            if value is not None:
                found.append(value)
    return found


def _are_places(value: Any) -> bool:
    try:
        return bool(len(value)) and all(operator.index(place) >= 0 for place in value)
    except TypeError:
        return False


def _buttons(holders: tuple[Any, ...]) -> tuple[str, ...]:
    for holder in holders:
        buttons = getattr(holder, "get_available_buttons", None)
        if callable(buttons):
            return tuple(str(getattr(button, "name", button)) for button in buttons())
    return ()


def _pressed(game: Any, holders: tuple[Any, ...]) -> list[list[str]]:
    """Return the buttons that each action presses."""
    rows, names = getattr(game, "button_map", None), _buttons(holders)
    try:
        return [[name for name, is_down in zip(names, row, strict=True) if is_down] for row in rows or ()]
    except (TypeError, ValueError):
        return []


def _names_of(declared: Any, space: spaces.Discrete, chosen: Any = None) -> tuple[str, ...]:
    start, size = int(space.start), int(space.n)
    if isinstance(declared, list | tuple) and len(declared) != size:
        if chosen is None or len(chosen) != size or max(chosen) >= len(declared):
            return ()
        declared = [declared[place] for place in chosen]
    numbered = _numbered(declared, start, size)
    if len(numbered) < size:
        return ()
    found = [numbered.get(start + place) for place in range(size)]
    names = tuple(name for name in found if isinstance(name, str) and name.strip())
    if not len({*names}) == len(names) == size:
        return ()
    return tuple(_LETTERS[name] for name in names) if _LETTERS.keys() >= {*names} else names


def _numbered(declared: Any, start: int, size: int) -> dict[Any, Any]:
    """Return names by their numbers; what has none is left out."""
    if isinstance(declared, type) and issubclass(declared, Enum):
        return _of_members([*declared], start, size)
    if dataclasses.is_dataclass(declared) and not isinstance(declared, type):
        return _by_number((value, name) for name, value in vars(declared).items())
    if isinstance(declared, Mapping):
        return _by_number((key, value) if isinstance(value, str) else (value, key) for key, value in declared.items())
    if isinstance(declared, list | tuple):
        if declared and all(isinstance(item, Enum) for item in declared):
            return _of_members(declared, start, size)
        return dict(enumerate(declared, start))
    return {}


def _of_members(members: Sequence[Enum], start: int, size: int) -> dict[Any, Any]:
    """Return the names of members of enums by their values, or by their places where the values are not the numbers of the actions."""
    numbered = _by_number((member.value, member.name) for member in members)
    if len(members) != size or numbered.keys() == {*range(start, start + size)}:
        return numbered
    shared = {name for name, count in Counter(member.name for member in members).items() if count > 1}
    return {
        start + place: f"{type(member).__name__} {member.name}" if member.name in shared else member.name
        for place, member in enumerate(members)
    }


def _by_number(pairs: Iterator[tuple[Any, Any]]) -> dict[Any, Any]:
    numbered = {}
    for number, name in pairs:
        try:
            numbered[operator.index(number)] = name
        except TypeError:
            continue
    return numbered
