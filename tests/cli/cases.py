"""What commands play in tests, and how their tables are read."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.commands import run_vfgym

DATASET = "reasoning-gym/leg_counting-v0"
GAME = "gymnasium/FrozenLake-v1"
SHORT = "mine:Short-v0"
"""Four tasks of the module `mine`, each answered by its number."""

SAID: dict[str, tuple[Any, Any]] = {
    "env_args": ({"a": 1}, {}),
    "agents": (["random"], []),
    "models": (["m"], []),
    "provider": ("vllm", ""),
    "base_url": ("http://x", ""),
    "api_key_var": ("VAR", ""),
    "client_type": ("openai_responses", ""),
    "sampling_args": ({"n": 1}, {}),
    "num_examples": (7, -1),
    "rollouts_per_example": (3, 1),
    "max_concurrent": (5, -1),
    "seed": (9, 0),
    "split": ("train", "eval"),
    "example_ids": ([4], []),
    "both_seats": (True, False),
    "independent_scoring": (True, False),
    "max_retries": (2, 0),
    "pass_threshold": (0.5, 0.0),
    "shard": ("1/3", "0/3"),
    "limits": ("tokens=5", {}),
    "limits_each": ("turns=5", {}),
    "executor": ("process", "local"),
    "workers": (3, 1),
    "strict": (True, False),
    "state_columns": (["timing"], []),
    "tags": (["night"], []),
    "isolate": (True, False),
    "sandboxed": (True, False),
}
"""A value of each field of an evaluation that differs from its default, and one that is empty, 0 or the default."""

SECONDS = 240.0
"""How long a command may hang before its test fails."""


def program(*arguments: str) -> list[str]:
    """Return the command line that runs ``vfgym`` as a program."""
    return [sys.executable, "-m", "vfgym", *arguments]


def cells(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return re.split(r" {2,}", line)


def table(shown: str) -> dict[str, dict[str, str]]:
    """Return the rows of a table by their first cells; lines that are no rows of it are left out."""
    header, *lines = shown.splitlines()
    names = cells(header)
    rows = [cells(line) for line in lines]
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)}


def rewards(shown: str) -> dict[str, float]:
    """Return the mean rewards of agents and models that a table shows."""
    return {name: float(row["reward (95 %)"].partition(" ")[0]) for name, row in table(shown).items()}


def run_directories(directory: Path) -> list[Path]:
    """Return where results were written below a directory."""
    return sorted(directory.glob("outputs/evals/*/*"))


def played(*arguments: str, exit_code: int = 0, **environment: str) -> str:
    """Return what ``vfgym eval`` prints."""
    return run_vfgym("eval", *arguments, exit_code=exit_code, **environment).stdout


def played_as_json(*arguments: str) -> Any:
    """Return the one JSON value on standard output."""
    return json.loads(played(*arguments, "--json"))
