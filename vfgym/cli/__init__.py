"""The command ``vfgym``. What a command needs is imported when it runs, so that ``vfgym --help`` is quick."""

from __future__ import annotations

import sys

import gymnasium.error

from vfgym.errors import Error


def main() -> None:
    """Run the command line. What the user can mend is one line on the standard error stream, and exit code 2."""
    from vfgym.cli.app import Options, app

    options = Options()
    try:
        app(obj=options)
    except (Error, gymnasium.error.Error) as error:
        if options.shows_tracebacks:
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
