"""Steps of a call, counted: what Python runs, and what the matcher of regular expressions does, which no trace sees.

Both ask from time to time whether a signal came: Python whenever it jumps back or calls a function, the matcher after 4,096 steps. So a
signal whose handler raises the signal again, without a step of its own, is handled each time, and its handler counts: it is the function
of CPython's C API that marks a signal as having come, whose result goes into a list. The count is the same in every run, whatever else
the machine does.

It does not see loops in C over one text: `str.find`, a copy, a repeat of one set of characters before a letter. `patterns` looks at those
of patterns.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from typing import Any

_SIGNAL = signal.SIGUSR2


def count_steps(call: Callable[[], Any]) -> int:
    """Return the steps of a call, whatever exception it raises but `RecursionError`; in the main thread only."""
    counted: list[int] = []
    mark_again = ctypes.PyDLL(None)["PyErr_SetInterruptEx"]
    mark_again.argtypes = [ctypes.c_int, ctypes.py_object]  # the frame, which handlers get, is not looked at
    mark_again.restype = counted.append
    before = signal.signal(_SIGNAL, mark_again)
    try:
        mark_again(_SIGNAL, None)
        call()
    except RecursionError:
        raise
    except Exception:  # what readers say of texts that they do not read
        pass
    finally:
        signal.signal(_SIGNAL, _ignore)
        signal.signal(_SIGNAL, before)
    return len(counted)


def _ignore(number: int, frame: Any) -> None:
    """Handle the signal that is still there."""
