"""Names that a module offers without importing what is behind them, and documented names that are not offered and say why."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from verifiers_compat.not_offered import find_reason


def create_getattr(module: str, lazy: Mapping[str, Iterable[str]] | None = None) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module.

    Args:
        module: The module's name.
        lazy: For each module that is imported when something of it is first asked for, the names that are taken from it.

    Returns:
        A function that raises `ImportError` for what is not offered (so that ``from module import name`` shows the reason, see
        `verifiers_compat.not_offered`), and `AttributeError` for what was never there.
    """
    places = {name: where for where, names in (lazy or {}).items() for name in names}
    path = module.partition(".")[2]

    def find(name: str) -> Any:
        if name in places:
            value = getattr(importlib.import_module(places[name]), name)
            setattr(importlib.import_module(module), name, value)
            return value
        reason = find_reason(f"{path}.{name}".lstrip("."))
        if reason is not None:
            documented = ".".join(filter(None, ("verifiers", path, name)))
            raise ImportError(f"{documented} is not offered: {reason}", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    return find
