"""Levels of difficulty: the configurations that a curriculum of reasoning-gym gives a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from vfgym.errors import ConfigurationError
from vfgym.wrappers.reasoning_gym.package import reasoning_gym

_WITHOUT_ITEMS = frozenset({("jugs", 3), ("sokoban", 0)})
"""Levels whose items cannot be made in reasonable time, although the dataset accepts their configuration (reasoning-gym 0.1.25).

jugs tries for a minute and raises; sokoban wants ten boxes on 6 x 6 squares, and searches for minutes.
"""


@dataclass(frozen=True)
class Share:
    """A dataset, and its share in a composite."""

    name: str
    weight: float = 1.0
    config: Mapping[str, Any] = field(default_factory=dict)


def configurations_by_level(share: Share) -> dict[int, dict[str, Any]]:
    """Return the configuration of each level that reasoning-gym's curriculum has for a dataset, from easy to hard.

    All attributes of the curriculum rise together. A level is left out where the dataset refuses its configuration (level 1 of
    modulo_grid, say) or cannot make its items, and where nothing differs from the level below.

    Raises:
        ConfigurationError: If there is no curriculum, no level of it can be used, or the dataset's own configuration sets what
            the curriculum sets, or is malformed.
    """
    factory = reasoning_gym().factory
    if share.name not in factory.CURRICULA:
        raise ConfigurationError(f"reasoning-gym has no curriculum for the dataset {share.name!r}")
    curriculum = factory.create_curriculum(share.name)
    for name in _field_names(curriculum):
        if name in share.config:
            raise ConfigurationError(f"the configuration of {share.name!r} must not set {name!r}: its curriculum does")
    found: dict[int, dict[str, Any]] = {}
    refusal: Exception | None = None
    previous: dict[str, Any] | None = None
    for level in itertools.count():
        try:
            config = curriculum.generate_configuration(dict(share.config))
            if hasattr(config, "validate"):
                config.validate()
        except TypeError as error:
            raise ConfigurationError(f"reasoning-gym refuses the configuration of {share.name!r}: {error}") from error
        except (AssertionError, ValueError) as error:
            refusal = error
        else:
            values = {each.name: getattr(config, each.name) for each in fields(config) if each.init and each.name not in ("seed", "size")}
            if values != previous and (share.name, level) not in _WITHOUT_ITEMS:
                found[level] = previous = values
        if not curriculum.increment_global_level():
            break
    if not found:
        raise ConfigurationError(f"no level of reasoning-gym's curriculum for {share.name!r} can be used: {refusal}") from refusal
    return found


def _field_names(curriculum: Any) -> Iterator[str]:
    """Return the names of the fields that a curriculum sets."""
    for attribute in curriculum.attributes.values():
        for key in ("field_name", "lower_field_name", "upper_field_name"):
            if hasattr(attribute, key):
                yield getattr(attribute, key)
