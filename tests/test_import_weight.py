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
    """Nor do what is listed of TextArena's games, and what is defined of reasoning-gym's environments."""
    program = """
        import sys
        import vfgym
        print(*sys.modules)
        from vfgym.wrappers.textarena import textarena_games, why_not
        [why_not(env_id) for env_id in textarena_games()]
        vfgym.ReasoningGymEnv("leg_counting")
        print(*sys.modules)
    """
    loaded, then = (set(line.split()) for line in run_python(program, check=True).stdout.splitlines())
    assert {"vfgym", "vfgym.tools"} <= loaded
    assert HEAVY.intersection(loaded) == set(), "import these inside the functions that use them"
    assert then.isdisjoint({"reasoning_gym", "textarena", "nltk"})
