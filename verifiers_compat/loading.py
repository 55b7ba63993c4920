"""Names that a module offers without importing what is behind them, and documented names that are not available here and say why."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def create_getattr(
    module: str, *, lazy: Mapping[str, Iterable[str]] | None = None, unavailable: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module.

    Args:
        module: The module's name.
        lazy: For each module that is imported when something of it is first asked for, the names that are taken from it.
        unavailable: For each documented name that is not offered, why.

    Returns:
        A function that raises `ImportError` for what is not available (so that ``from module import name`` shows the reason), and
        `AttributeError` for what was never there.
    """
    places = {name: where for where, names in (lazy or {}).items() for name in names}
    unavailable = unavailable or {}

    def find(name: str) -> Any:
        if name in places:
            value = getattr(importlib.import_module(places[name]), name)
            setattr(importlib.import_module(module), name, value)
            return value
        if name in unavailable:
            raise ImportError(f"{module}.{name} is not offered: {unavailable[name]}", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    return find
