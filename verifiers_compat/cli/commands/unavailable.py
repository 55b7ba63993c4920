"""Commands that are documented and do not exist here: they say why, and exit with 2."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import NoReturn

from verifiers_compat.cli.program import REFUSED
from vfgym.output.terminal import echo

_TRAINER = "no trainer is part of this package. Train with one of those that its guide of training names (TRL, verl, SkyRL, ...)"

REASONS: Mapping[str, str] = {
    "vf-build": "images of OpenEnv projects are not built here. `docker build -t NAME PROJECT` makes one, whose NAME goes into the"
    " .build.json of the project; vf.OpenEnvEnv(url=...) needs none",
    "vf-rl": _TRAINER,
    "vf-train": _TRAINER,
    "vf-vllm": "no inference server is part of this package. Start vLLM as its own pages say (`vllm serve MODEL`), and name its URL"
    " with -b",
}
"""Why each command does not exist."""


def refuse(command: str) -> NoReturn:
    """Say that a command does not exist, and exit."""
    echo(f"error: {command} does not exist here: {REASONS[command]}", to_stderr=True)
    sys.exit(REFUSED)


build = functools.partial(refuse, "vf-build")
rl = functools.partial(refuse, "vf-rl")
train = functools.partial(refuse, "vf-train")
vllm = functools.partial(refuse, "vf-vllm")
