"""What all commands have in common: exit codes, JSON for programs, tracebacks for those who ask, and how a wrong command line ends.

With ``--json`` a command prints one JSON value on standard output and nothing else there; what is for people goes to standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any

import typer

from vfgym.errors import ConfigurationError
from vfgym.output.redaction import redact_data
from vfgym.output.terminal import echo
from vfgym.results.plain_json import json_text


class Exit(IntEnum):
    """What the exit code of a command says."""

    GOOD = 0
    NOT_GOOD = 1
    """It ran, and what came out is not good: rollouts failed so that there is no mean, or a fault was found."""
    WRONG_INPUT = 2
    """What it was given cannot be used: one line says why, and nothing was written."""
    LIMIT = 3
    """A limit ended the run."""
    INTERRUPTED = 130
    """Ctrl-C or the end of the input stopped it."""


@dataclass
class Options:
    """What a command line says besides its command; typer keeps it in the context."""

    shows_tracebacks: bool = False


def _show_tracebacks(context: typer.Context, is_asked: bool) -> bool:
    if is_asked:
        context.find_root().ensure_object(Options).shows_tracebacks = True
    return is_asked


Debug = Annotated[bool, typer.Option("--debug", callback=_show_tracebacks, help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output; all else goes to standard error.")]


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output, without secrets."""
    echo(json_text(redact_data(value), is_indented=True))


def invoke(app: typer.Typer, options: Options, *, name: str | None = None, arguments: Sequence[str] | None = None) -> int | None:
    """Run an app, by default with the name and the arguments of the process.

    Returns:
        The exit code of the command; None for 0.

    Raises:
        ConfigurationError: If the command line is wrong: an unknown option, an argument that is missing or cannot be read.
        Exception: What the command raises.
    """
    try:
        return app(prog_name=name, args=arguments, obj=options, standalone_mode=False)  # type: ignore[no-any-return]
    except typer.Abort:  # the input ended where the command asked something
        echo("stopped: the input has ended", to_stderr=True)
        return Exit.INTERRUPTED
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer has no public class of all that is wrong with a command line
            raise
        message = " ".join(error.format_message().split())
        raise ConfigurationError(f"{message} (--help lists what can be given)") from error
