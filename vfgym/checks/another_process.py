"""A seed gives the same episodes in another process, whose hashes, and so the order of its sets, are others."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.bounded_json import parse_json
from vfgym.checks.comparison import Broken
from vfgym.checks.environment import CheckedEnvironment
from vfgym.checks.episodes import expect_same_episodes, record_episodes

_Source: TypeAlias = dict[str, str]
"""How another process makes an environment: its ``spec`` as JSON, or a function by its ``module``, ``file`` and ``name``."""

_LONGEST_SECONDS = 300
"""Seconds after which the other process is ended."""

_PROGRAM = """
import json, sys
given = json.load(sys.stdin)
sys.path[:] = given["path"]
from vfgym.checks.another_process import print_episodes
print_episodes(given["source"])
"""


def find_source(env: str | EnvSpec | Callable[[], gym.Env[Any, Any]]) -> _Source | None:
    """Return how another process makes an environment; None where it cannot (a lambda, say, or a function inside another one)."""
    if isinstance(env, str | EnvSpec):
        try:
            return {"spec": (gym.spec(env) if isinstance(env, str) else env).to_json()}
        except ValueError:  # an entry point that is an object, or arguments that are no JSON
            return None
    module, name = getattr(env, "__module__", None), getattr(env, "__qualname__", "")
    try:
        found: object = functools.reduce(getattr, name.split("."), sys.modules.get(module or ""))
        file = inspect.getsourcefile(env)
    except (AttributeError, TypeError):
        return None
    if found is not env or module is None or file is None or not Path(file).exists():
        return None
    return {"module": module, "file": str(Path(file).resolve()), "name": name}


def replays_elsewhere(checked: CheckedEnvironment, source: _Source) -> str:
    """Play the same episodes here and in another process, and compare them."""
    here = record_episodes(checked.make())
    process = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=json.dumps({"path": sys.path, "source": source}),
        env={**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_LONGEST_SECONDS,
    )
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [f"it exited with {process.returncode}"]
        raise Broken(f"another process could not play it: {lines[-1]}")
    there = parse_json(process.stdout.rpartition("\n")[2])
    expect_same_episodes(here, there, "this process and one with another hash seed")
    return f"{len(here)} episodes"


def print_episodes(source: _Source) -> None:
    """Play the episodes that are compared, in the process that was started for it, and print them as the last line."""
    if "spec" in source:
        made = CheckedEnvironment(EnvSpec.from_json(source["spec"])).make()
    else:
        function = functools.reduce(getattr, source["name"].split("."), _import_module(source["module"], source["file"]))
        made = CheckedEnvironment(function).make()
    sys.stdout.write("\n" + json.dumps(record_episodes(made)))
    sys.stdout.flush()


def _import_module(name: str, file: str) -> Any:
    """Import a module by its name, or from its file where the name says nothing here: that of a script, or of a test."""
    if name != "__main__":
        try:
            module = importlib.import_module(name)
        except ImportError:
            pass
        else:
            if getattr(module, "__file__", None) == file:
                return module
    spec = importlib.util.spec_from_file_location("checked_module", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
