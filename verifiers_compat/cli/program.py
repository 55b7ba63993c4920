"""How every command runs: what the user can mend is one line on the standard error stream, and exit code 2."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import typer

from verifiers_compat.utils.config_utils import MissingKeyError
from vfgym.cli.app import Debug, Options
from vfgym.errors import ConfigurationError, Error
from vfgym.output.terminal import echo, echo_traceback

__all__ = ["FAILED", "INTERRUPTED", "REFUSED", "Debug", "json_object", "new_app", "note", "run"]

FAILED = 1
"""Exit code where the command could not do what it was asked for."""
REFUSED = 2
"""Exit code where it was asked for something that cannot be done at all."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C stopped."""


def new_app(name: str, description: str) -> typer.Typer:
    """Return an app with plain help and plain errors."""
    return typer.Typer(
        name=name,
        help=description,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run(app: typer.Typer, arguments: Sequence[str] | None = None) -> None:
    """Run an app on `arguments`, by default those of the process, and exit."""
    options = Options()
    try:
        app(args=list(sys.argv[1:] if arguments is None else arguments), prog_name=app.info.name, obj=options)
    except Exception as error:
        if options.shows_tracebacks or not isinstance(error, Error | MissingKeyError):
            echo_traceback(error)
            sys.exit(FAILED)
        echo(f"error: {error}", to_stderr=True)
        sys.exit(REFUSED)


def note(text: str) -> None:
    """Tell the user something on the standard error stream."""
    echo(f"note: {text}", to_stderr=True)


def json_object(option: str, text: str) -> dict[str, Any]:
    """Return the JSON object that an option was given.

    Raises:
        ConfigurationError: If it is none.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{option} must be JSON: {error}") from None  # the text itself may have keys in it
    if not isinstance(value, dict):
        raise ConfigurationError(f"{option} must be a JSON object, such as '{{\"key\": 5}}', got {type(value).__name__}")
    return value
