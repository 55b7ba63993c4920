"""Go boards of different sizes in one process.

PettingZoo (1.27) keeps the size of go's board, and the points, neighbours and empty board that follow from it, as globals of the module
``go_base``, which its modules ``go`` and ``coords`` read too. Each game that is made sets them for all, so that games of another size,
made before, raise `IndexError` or play on the wrong board.
"""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType
from typing import Any

_PACKAGE = "pettingzoo.classic.go"


def keep_board_size(game: Any) -> None:
    """Let an unwrapped game that is PettingZoo's go keep to its board size, from its next reset on; leave others as they are.

    Its class becomes a copy that was made for the size, so it is not an instance of PettingZoo's own class any more, and pickle does not
    find it (tables can be pickled). A class that somebody derived from PettingZoo's stays as it is.
    """
    if (type(game).__module__, type(game).__qualname__) == (f"{_PACKAGE}.go", "raw_env"):
        game.__class__ = _go_of_size(len(game.observation_space(game.possible_agents[0])["observation"].low))


@functools.cache
def _go_of_size(board_size: int) -> Any:
    """Return a copy of go's class whose modules are copies too, and are set for one size."""
    go, go_base, coords = (_copy_of(f"{_PACKAGE}.{name}") for name in ("go", "go_base", "coords"))
    go.go_base = coords.go_base = go_base  # type: ignore[attr-defined]
    go.coords = go_base.coords = coords  # type: ignore[attr-defined]
    cls = go.raw_env
    cls(board_size=board_size)  # sets the globals
    return cls


def _copy_of(name: str) -> ModuleType:
    """Return a module that is executed anew and is not in `sys.modules`."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
