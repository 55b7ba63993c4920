"""Names that a module offers without importing what is behind them, and names that it leaves out and says why."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def module_getattr(
    module: str, *, lazy: Mapping[str, str] | None = None, left_out: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module.

    Args:
        module: The module's name.
        lazy: For each name that is imported when it is first asked for, where it is: ``"package.module:name"``.
        left_out: For each documented name that is not offered, why.

    Returns:
        A function that raises `ImportError` for what is left out (so that ``from module import name`` shows the reason), and
        `AttributeError` for what was never there.
    """
    lazy, left_out = lazy or {}, left_out or {}

    def find(name: str) -> Any:
        if name in lazy:
            where, _, attribute = lazy[name].partition(":")
            value = getattr(importlib.import_module(where), attribute)
            setattr(importlib.import_module(module), name, value)
            return value
        if name in left_out:
            raise ImportError(f"{module}.{name} is not offered: {left_out[name]}", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    return find
