"""``import vfgym`` stays light: what is heavy or optional is imported where it is used."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "aiohttp",
    "anthropic",
    "datasets",
    "docstring_parser",
    "math_verify",
    "mcp",
    "openai",
    "pettingzoo",
    "pygame",
    "ray",
    "reasoning_gym",
    "rich",
    "textarena",
    "typer",
    "verifiers_compat",
}


def test_import_vfgym_loads_nothing_heavy() -> None:
    command = [sys.executable, "-c", "import sys, vfgym; print(*sys.modules)"]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "vfgym" in loaded
    assert HEAVY.intersection(loaded) == set(), "import these inside the functions that use them"
