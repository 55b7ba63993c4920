"""The command ``vfgym``. What a command needs is imported when it runs, so that ``vfgym --help`` is quick."""

from __future__ import annotations

import sys

import gymnasium.error

from vfgym.errors import Error
from vfgym.output.terminal import echo, echo_traceback


def main() -> None:
    """Run the command line. What the user can mend is told on the standard error stream, with exit code 2.

    It is one line, or the part of a traceback that lies in the user's own code.
    """
    from vfgym.cli.app import app
    from vfgym.cli.conventions import Options, invoke

    options = Options()
    try:
        sys.exit(invoke(app, options))
    except Exception as error:
        text = None if options.shows_tracebacks else _error_message(error)
        if text is None:
            echo_traceback(error)
            sys.exit(1)
        echo(text, to_stderr=True)
        sys.exit(2)


def _error_message(error: Exception) -> str | None:
    """Return what the user is told of an error; None for one of the library's own making, whose traceback is needed."""
    if isinstance(error, Error | gymnasium.error.Error):
        return f"error: {error}"
    from vfgym.cli.failures import failure_message

    return failure_message(error)
