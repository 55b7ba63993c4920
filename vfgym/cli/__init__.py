"""The command ``vfgym``. What a command needs is imported when it runs, so that ``vfgym --help`` is quick."""

from __future__ import annotations

import sys

import gymnasium.error

from vfgym.errors import Error


def main() -> None:
    """Run the command line. What the user can mend is told on the standard error stream, with exit code 2.

    It is one line, or the part of a traceback that lies in the user's own code.
    """
    from vfgym.cli.app import Options, app

    options = Options()
    try:
        app(obj=options)
    except (Error, gymnasium.error.Error) as error:
        if options.shows_tracebacks:
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if options.shows_tracebacks:
            raise
        from vfgym.cli.failures import told

        text = told(error)
        if text is None:
            raise
        print(text, file=sys.stderr)
        sys.exit(2)
