"""Commands that are documented and do not exist here: they say why, and exit with 2."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from verifiers_compat.cli.program import REFUSED
from vfgym.output.terminal import echo

REASONS: Mapping[str, str] = {
    "vf-build": "OpenEnv images are built for hosted sandboxes, which this package does not offer",
    "vf-gepa": "prompts are not optimised here; vf-eval compares prompts that you write (a sweep over an argument of the environment)",
    "vf-tui": "there is no full-screen viewer here; results.jsonl and metadata.json are read by vfgym.results.load_results",
}
"""Why each command does not exist."""


def main() -> NoReturn:
    """Say why the command by whose name this program was started does not exist (why none of them does, under any other name)."""
    command = Path(sys.argv[0]).stem
    for name in [command] if command in REASONS else REASONS:
        echo(f"error: {name} does not exist here: {REASONS[name]}", to_stderr=True)
    sys.exit(REFUSED)


if __name__ == "__main__":
    main()
