"""What is told of an exception that code of the user's led to: an agent's module, a function that makes an environment, ..."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import gymnasium.envs.registration

_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
_VFGYM = Path(__file__).parents[1]


def failure_message(error: Exception) -> str | None:
    """Return what the user is told of an exception: the traceback from their own code on. None where none of it is involved."""
    traces = list(_traces(error))
    own = next((trace for trace in traces if _is_own(_file(trace))), None)
    if own is not None or (isinstance(error, SyntaxError) and _is_own(error.filename or "")):
        return "".join(traceback.format_exception(type(error), error, own)).rstrip()
    # Where an id's entry point is not found, or makes no environment, it is Gymnasium that says so.
    libraries = [_file(trace) for trace in traces if not _is_of_python(_file(trace))]
    return f"error: {type(error).__name__}: {error}" if libraries[-1] == gymnasium.envs.registration.__file__ else None


def _traces(error: Exception) -> Iterator[TracebackType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _is_own(file: str) -> bool:
    """Say whether a file is neither Python's, nor of an installed package, nor this library's."""
    return not (_is_of_python(file) or _is_installed(file) or Path(file).is_relative_to(_VFGYM))


def _is_of_python(file: str) -> bool:
    """Say whether a file belongs to the standard library, some of which has no files (``<frozen importlib._bootstrap>``)."""
    return not Path(file).is_absolute() or (Path(file).is_relative_to(_STANDARD_LIBRARY) and not _is_installed(file))


def _is_installed(file: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
