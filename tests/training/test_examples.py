"""The examples of training learn: their curves rise, in training and on fresh episodes, and do not where rewards are shuffled."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.peers import python_of

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


def test_a_table_learns_to_cross_the_lake(tmp_path: Path) -> None:
    in_training, on_fresh = rise_of(curve_of("reinforce_frozen_lake", 0, tmp_path))
    assert in_training >= 0.3
    assert on_fresh >= 0.3


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


@pytest.mark.peers
def test_trl_learns_in_the_same_way_each_time(trl_python: str, tmp_path: Path) -> None:
    first, second = (curve_of("trl_grpo_tools", 0, tmp_path / folder, python=trl_python) for folder in ("first", "second"))
    assert first == second


@pytest.mark.peers
def test_trl_learns_nothing_from_shuffled_rewards(trl_python: str, tmp_path: Path) -> None:
    _, on_fresh = rise_of(curve_of("trl_grpo_tools", 0, tmp_path, "--shuffle-rewards", python=trl_python))
    assert on_fresh < 0.05
