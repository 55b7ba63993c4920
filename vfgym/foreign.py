"""Other people's packages: what they warn of while they are imported or make a game is for their authors, not for who plays.

Python compiles a package when it is first imported, if the installer did not (uv does not), and then warns of its source too.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

_ONE_AT_A_TIME = threading.RLock()
"""The filters of warnings belong to the process: two threads that set and restore them by turns would leave the wrong ones."""


@contextlib.contextmanager
def mute_warnings() -> Iterator[None]:
    """Ignore all warnings inside a ``with`` block."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def is_pettingzoo(env: Any) -> bool:
    """Say whether something is an environment of PettingZoo, which is not imported for that."""
    return any(cls.__module__.startswith("pettingzoo.") for cls in type(env).__mro__)
