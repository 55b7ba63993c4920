"""The examples of training learn: their curves rise, in training and on fresh episodes, and do not where rewards are shuffled."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import vfgym
from scripts.peers import python_of
from vfgym.errors import SandboxError
from vfgym.training import rollout, samples

EXAMPLES = Path(__file__).parents[2] / "examples" / "training"
LEARN = ["reinforce_frozen_lake", "self_play_tictactoe", "grpo_reasoning_gym"]

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install 'vfgym[train]'")
CASES = [pytest.param(name, marks=[needs_torch] if name.startswith("grpo") else []) for name in LEARN]


def curve_of(name: str, seed: int, out: Path, *flags: str, python: str = sys.executable) -> dict[str, Any]:
    """Run an example, and return what it wrote."""
    command = [python, str(EXAMPLES / f"{name}.py"), "--seed", str(seed), "--out", str(out), *flags]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(EXAMPLES.parents[1])}, capture_output=True)
    assert (out / "curve.png").stat().st_size > 1000
    curve: dict[str, Any] = json.loads((out / "curve.json").read_text())
    assert curve["seed"] == seed
    assert len(curve["train"]) >= 10
    return curve


def rise_of(curve: dict[str, Any]) -> tuple[float, float]:
    """Return by how much rewards rose: in training (the last tenth over the first), and on fresh episodes."""
    train = curve["train"]
    tenth = max(1, len(train) // 10)
    return sum(train[-tenth:]) / tenth - sum(train[:tenth]) / tenth, curve["held_out"]["after"] - curve["held_out"]["before"]


def test_a_table_learns_to_cross_the_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In half of the updates; the whole family takes all of them, and every example."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    lake: Any = importlib.import_module("reinforce_frozen_lake")
    monkeypatch.setattr(lake, "UPDATES", 14)
    env, policy = vfgym.to_chat("FrozenLake-v1", success_rate=0.8, history=0), lake.TablePolicy()
    before = lake.held_out(env, policy)
    means = asyncio.run(lake.train(env, policy, SimpleNamespace(seed=0, shuffle_rewards=False)))
    assert sum(means[-3:]) / 3 - sum(means[:3]) / 3 >= 0.2
    assert lake.held_out(env, policy) - before >= 0.3


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", CASES)
def test_it_learns_under_every_seed(name: str, seed: int, tmp_path: Path) -> None:
    assert min(rise_of(curve_of(name, seed, tmp_path))) >= 0.3


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_there_is_nothing_to_learn_from_shuffled_rewards(name: str, tmp_path: Path) -> None:
    _, on_fresh = rise_of(curve_of(name, 0, tmp_path, "--shuffle-rewards"))
    assert on_fresh < 0.05


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_the_same_seed_gives_the_same_curve(name: str, tmp_path: Path) -> None:
    first, second = (curve_of(name, 1, tmp_path / folder) for folder in ("first", "second"))
    assert {**first, "env_cpu_share": 0} == {**second, "env_cpu_share": 0}


class Faults(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Breaks 3 of 100 steps, and so about 30 of 100 rollouts: a host that goes away meets those that last longest most."""

    def __init__(self, env: Any, seed: int) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, seed=seed)
        super().__init__(env)
        self._rng = np.random.default_rng(seed)

    def step(self, action: Any) -> Any:
        if self._rng.random() < 0.03:
            raise SandboxError("the host went away")
        return super().step(action)


def lake_curve(
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    *,
    faults: type[gymnasium.Wrapper[Any, Any, Any, Any]] | None,
    failures: Any = "drop",
    replace: int = 2,
    shuffle: bool = False,
) -> list[float]:
    """Learn to cross the lake as the example does. Return the mean reward of each update's rollouts that nothing broke."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    lake: Any = importlib.import_module("reinforce_frozen_lake")
    monkeypatch.setattr(sys.modules["vfgym.runs.rollout"], "seconds_before_retry", lambda attempt: 0.0)
    monkeypatch.setattr(lake, "samples", functools.partial(samples, failures=failures))
    monkeypatch.setattr(lake.vfgym, "rollout", functools.partial(rollout, replace=replace))
    env: Any = vfgym.to_chat("FrozenLake-v1", success_rate=0.8, history=0)
    arguments = SimpleNamespace(seed=seed, shuffle_rewards=shuffle)
    means: list[float] = asyncio.run(lake.train(env if faults is None else faults(env, 1000 + seed), lake.TablePolicy(), arguments))
    return means


def test_rollouts_that_can_be_replaced_move_nothing_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replacement has the task, the seed and the random numbers of what was broken."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(importlib.import_module("reinforce_frozen_lake"), "UPDATES", 2)
    curve = functools.partial(lake_curve, monkeypatch, 0)
    assert curve(faults=Faults, replace=30) == curve(faults=None)


@pytest.fixture
def trl_python() -> str:
    """The Python of the environment in which TRL is installed."""
    python = python_of("trl")
    assert python.exists(), "there is no TRL to train with: python scripts/peers.py trl"
    return str(python)


@pytest.mark.peers
@pytest.mark.parametrize("seed", [0, 1])
def test_trl_learns_to_call_the_right_tool(seed: int, trl_python: str, tmp_path: Path) -> None:
    assert min(rise_of(curve_of("trl_grpo_tools", seed, tmp_path, python=trl_python))) >= 0.3
