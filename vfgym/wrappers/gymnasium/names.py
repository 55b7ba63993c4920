"""What an environment declares of its actions and observations: names in enums, mappings and lists, word for word.

A name is taken only where there is exactly one for each element of the space: a wrong one is worse than none.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from gymnasium import spaces

_OF_ACTIONS = ("actions", "Actions", "action_names", "ACTION_NAMES")
_OF_OBSERVATIONS = ("observation_labels", "observation_names", "feature_names", "features")


def declared_action_names(game: Any, space: spaces.Discrete) -> tuple[str, ...]:
    """Return what an environment calls its actions, in order; empty where it does not say.

    It says so with ``get_action_meanings``, or in an attribute (``actions``, ``Actions``, ``action_names``, ``ACTION_NAMES``) of its own
    or of its ``action_type`` that is an enum, a mapping from numbers to names or from names to numbers, a dataclass of numbers, or a
    list of names.
    """
    meanings = getattr(game, "get_action_meanings", None)
    declared = [meanings()] if callable(meanings) else []
    declared += _attributes((game, getattr(game, "action_type", None)), _OF_ACTIONS)
    return next(filter(None, (_names_of(value, space) for value in declared)), ())


def declared_labels(game: Any) -> Iterator[tuple[str, ...]]:
    """Yield what an environment calls the numbers of its observations: lists of texts.

    They stand in an attribute (``observation_labels``, ``observation_names``, ``feature_names``, ``features``) of its own or of its
    ``observation_type``.
    """
    for value in _attributes((game, getattr(game, "observation_type", None)), _OF_OBSERVATIONS):
        if isinstance(value, list | tuple) and value and all(isinstance(label, str) for label in value) and len({*value}) == len(value):
            yield tuple(value)


def _attributes(holders: tuple[Any, ...], names: tuple[str, ...]) -> list[Any]:
    return [value for holder in holders for name in names if (value := getattr(holder, name, None)) is not None]


def _names_of(declared: Any, space: spaces.Discrete) -> tuple[str, ...]:
    numbered = _numbered(declared, int(space.start))
    if len(numbered) < space.n:
        return ()
    names = [numbered.get(int(space.start) + place) for place in range(int(space.n))]
    is_complete = all(isinstance(name, str) and name.strip() for name in names) and len({*names}) == len(names)
    return tuple(map(str, names)) if is_complete else ()


def _numbered(declared: Any, start: int) -> dict[Any, Any]:
    """Return names by their numbers; what has none is left out."""
    if isinstance(declared, type) and issubclass(declared, Enum):
        return _by_number((member.value, member.name) for member in declared)
    if dataclasses.is_dataclass(declared) and not isinstance(declared, type):
        return _by_number((value, name) for name, value in vars(declared).items())
    if isinstance(declared, Mapping):
        return _by_number((key, value) if isinstance(value, str) else (value, key) for key, value in declared.items())
    if isinstance(declared, list | tuple):
        if declared and all(isinstance(item, Enum) for item in declared):
            return _by_number((item.value, item.name) for item in declared)
        return dict(enumerate(declared, start))
    return {}


def _by_number(pairs: Iterator[tuple[Any, Any]]) -> dict[Any, Any]:
    numbered = {}
    for number, name in pairs:
        try:
            numbered[operator.index(number)] = name
        except TypeError:
            continue
    return numbered
