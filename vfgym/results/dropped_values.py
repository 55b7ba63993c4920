"""Values that rows drop, or hold as text only, since JSON has no form for them: where in a row they stood, and a warning in the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

_MOST_NAMED = 5
"""Places that one warning names."""

_MOST_KINDS = 20
"""Kinds of places after which a run warns no more: where the keys of a dict change, each row has new ones."""


class Place(NamedTuple):
    """Something that has no form in JSON, and where it stood."""

    path: str
    """Such as ``trajectory[3].extras.game_info.lock``."""
    reason: str


class StandIn(str):
    """Text that stands for something without a form in JSON, until `resolve_stand_ins` has found out where."""

    reason: str

    @classmethod
    def of(cls, text: str, reason: str) -> StandIn:
        """Return text that stands for something.

        Args:
            text: The text.
            reason: Why it stands there.
        """
        stand_in = cls(text)
        stand_in.reason = reason
        return stand_in


def resolve_stand_ins(value: Any, path: str, places: list[Place]) -> Any:
    """Return plain data with ordinary text for each `StandIn`; lists and dicts are changed in place.

    Args:
        value: What `vfgym.results.plain_json.as_json` returned, with a fallback that gives stand-ins.
        path: Where it stands.
        places: Gets the places of the stand-ins.
    """
    if value.__class__ is StandIn:
        places.append(Place(path, value.reason))
        return str(value)
    for key, item in _items(value):
        if isinstance(item, StandIn | dict | list):
            where = f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}"
            text = resolve_stand_ins(item, where, places)
            if text is not item:
                value[key] = text
    return value


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        return iter([*dict.items(value)])
    return enumerate(value) if isinstance(value, list) else iter(())


class DroppedValueLog:
    """Warns once in a run of each kind of value that its rows drop or hold as text only, up to a number of kinds.

    Places are of one kind but for numbers of list items.
    """

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def warn(self, row: Mapping[str, Any], places: Sequence[Place], verb: str = "leaves out") -> None:
        """Warn of what a row is without; or holds as its ``repr``, which cannot be read back, where the verb says so."""
        if len(self._warned) >= _MOST_KINDS:
            return
        new: dict[str, Place] = {}
        for place in places:
            kind = re.sub(r"\[\d+\]", "[]", place.path)
            if kind not in self._warned:
                new.setdefault(kind, place)
        self._warned.update(new)
        if not new:
            return
        named = "; ".join(f"{place.path}: {place.reason}" for place in [*new.values()][:_MOST_NAMED])
        more = f"; and {len(new) - _MOST_NAMED} more" if len(new) > _MOST_NAMED else ""
        logger.warning(
            "the row of example %s, rollout %s %s %s%s (the same places in other steps and rows are not reported)",
            row.get("example_id"),
            row.get("rollout") or 0,
            verb,
            named,
            more,
        )
        if len(self._warned) >= _MOST_KINDS:
            logger.warning("rows may lack more than what was reported so far: no further places are reported in this run")
