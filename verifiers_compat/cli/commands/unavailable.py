"""Commands that are documented and do not exist here: they say why, and exit with 2."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import NoReturn

from verifiers_compat.cli.program import REFUSED
from vfgym.output.terminal import echo

REASONS: Mapping[str, str] = {
    "vf-build": "OpenEnv images are built for hosted sandboxes, which this package does not offer",
    "vf-gepa": "prompts are not optimised here; vf-eval compares prompts that you write (a sweep over an argument of the environment)",
    "vf-tui": "there is no full-screen viewer here; results.jsonl and metadata.json are read by vfgym.results.load_results",
}
"""Why each command does not exist."""


def refuse(command: str) -> NoReturn:
    """Say that a command does not exist, and exit."""
    echo(f"error: {command} does not exist here: {REASONS[command]}", to_stderr=True)
    sys.exit(REFUSED)


build = functools.partial(refuse, "vf-build")
gepa = functools.partial(refuse, "vf-gepa")
tui = functools.partial(refuse, "vf-tui")
