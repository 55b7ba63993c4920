"""What all commands have in common: exit codes, and JSON for programs.

With ``--json`` a command prints one JSON value on standard output and nothing else there; what is for people goes to standard error.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any

import typer

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


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output; all else goes to standard error.")]


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output, without secrets."""
    echo(json_text(redact_data(value), is_indented=True))
