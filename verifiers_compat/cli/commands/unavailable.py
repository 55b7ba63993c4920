"""Commands that are documented and do not exist here: they say why, and exit with 2."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import NoReturn

from verifiers_compat.cli.program import REFUSED
from vfgym.output.terminal import echo

REASONS: Mapping[str, str] = {
    "vf-build": "images of OpenEnv projects are not built here yet; `docker build` in the project's directory makes one",
}
"""Why each command does not exist."""


def refuse(command: str) -> NoReturn:
    """Say that a command does not exist, and exit."""
    echo(f"error: {command} does not exist here: {REASONS[command]}", to_stderr=True)
    sys.exit(REFUSED)


build = functools.partial(refuse, "vf-build")
