"""Whether a name of verifiers is offered here, and what it is."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from verifiers_compat.alias import ALIAS, REAL
from verifiers_compat.not_offered import find_reason
from vfgym.errors import MissingExtra, did_you_mean


class NotOffered(Exception):
    """A name is not offered; the message is the reason."""


def find_offer(path: str) -> Any:
    """Return what a dotted path means here; None where only an extra that is not installed could tell.

    Args:
        path: A path that begins with ``verifiers``.

    Raises:
        NotOffered: If there is no such name.
    """
    value: Any = importlib.import_module(REAL)
    found = ALIAS
    for part in path.split(".")[1:]:
        if not isinstance(value, ModuleType | type):
            return value  # of what else there may be, its attributes are not known before it runs
        try:
            value = _take(value, part)
        except MissingExtra:
            return None
        except (AttributeError, ImportError) as error:
            raise NotOffered(_reason(value, found, part)) from error
        found = f"{found}.{part}"
    return value


def _take(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        if not isinstance(value, ModuleType):
            raise
        return importlib.import_module(f"{value.__name__}.{name}")


def _reason(value: Any, found: str, name: str) -> str:
    reason = find_reason(f"{found}.{name}".partition(".")[2]) if isinstance(value, ModuleType) else None
    if reason is not None:
        return reason
    if name.startswith("_"):
        return "it is a private name of verifiers, and no part of its documented API"
    known = getattr(value, "__all__", None) or [each for each in dir(value) if not each.startswith("_")]
    return f"{found} has no such name.{did_you_mean(name, known)}"


def find_refused(target: Any, keywords: tuple[str, ...]) -> list[str]:
    """Return the keyword arguments that something that is called does not take."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return []
    return [name for name in keywords if name not in {each.name for each in parameters}]


def offered_or_none(path: str) -> Any:
    """Return what a dotted path means here; None where it is not of verifiers, not here, or not known before it runs."""
    try:
        return find_offer(path) if path.startswith(f"{ALIAS}.") else None
    except NotOffered:
        return None
