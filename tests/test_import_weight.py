"""``import vfgym`` stays light: what is heavy or optional is imported where it is used."""

from __future__ import annotations

from tests.programs import run_python

HEAVY = {
    "aiohttp",
    "anthropic",
    "datasets",
    "docker",
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
    loaded = run_python("import sys, vfgym; print(*sys.modules)", check=True).stdout.split()
    assert {"vfgym", "vfgym.tools"} <= set(loaded)
    assert HEAVY.intersection(loaded) == set(), "import these inside the functions that use them"
