"""Ordinary work writes to the standard error stream what this library has to say, and nothing of what others warn of."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import datasets
import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))

OWN = re.compile(r"\S+ \S+: \d+/\d+ \(\d+%\), reward \S+, \d+ failed, .*|.* - (vfgym|verifiers_compat)\S* - INFO - .*")
"""What a run says of itself where there is no terminal to draw on: its progress, and where its results are."""


def strange_lines(*arguments: str | Path, cwd: Path, **environment: str) -> list[str]:
    """Run Python in a fresh process that ends well, and return what others write to the standard error stream."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONWARNINGS", "CI")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env={**variables, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if not OWN.fullmatch(line)]


EVALUATIONS = """
import sys
from vfgym.cli import main

for env_id in sys.argv[1:]:
    sys.argv = ["vfgym", "eval", env_id, "--agent", "random", "--num-examples", "3"]
    try:
        main()
    except SystemExit as end:
        assert not end.code
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiles", ["packages of games", "all packages"])
def test_evaluations_show_their_progress_only(compiles: str, tmp_path: Path) -> None:
    """Also where Python compiles packages meanwhile, as it does in a virtual environment that uv has made."""
    ids = ["gymnasium/Blackjack-v1"]
    copies = tmp_path / "copies"
    for package, games in {
        "reasoning_gym": ["reasoning-gym/leg_counting-v0"],
        "cellpylib": [],  # which Reasoning Gym imports; Python 3.11 warns of its source
        "textarena": ["textarena/TicTacToe-v0", "textarena/Hangman-v0"],
        "pettingzoo": ["pettingzoo/chess-v6", "pettingzoo/texas_holdem_no_limit-v6"],
    }.items():
        if (spec := importlib.util.find_spec(package)) is not None and spec.origin is not None:
            ids += games
            shutil.copytree(Path(spec.origin).parent, copies / package, ignore=shutil.ignore_patterns("__pycache__"))
    where = {"PYTHONPATH": str(copies)} if compiles == "packages of games" else {"PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    assert strange_lines("-c", EVALUATIONS, *ids, cwd=tmp_path, PYTHONDONTWRITEBYTECODE="", **where) == []


PROGRAM = """
import sys
import datasets
import verifiers_compat as vf
from verifiers_compat.utils.data_utils import format_dataset
from vfgym.testing import ModelServer


def right(completion, answer):
    return float(completion[-1]["content"] == answer)


rows = datasets.Dataset.from_list([{"question": f"{i}?", "answer": "b"} for i in range(8)])
stored = datasets.load_from_disk(sys.argv[1])
with ModelServer(models={"m": lambda request: "b"}) as server:
    config = vf.ClientConfig(api_base_url=server.openai_url, api_key="none")
    for dataset in (rows, stored, stored.shuffle(seed=1), stored.select(range(5)), lambda: rows):
        env = vf.SingleTurnEnv(dataset=dataset, eval_dataset=dataset, system_prompt="Short.", rubric=vf.Rubric(right))
        results = env.evaluate_sync(client=config, model="m", rollouts_per_example=2)
        assert results["metadata"]["avg_reward"] == 1.0
        env.generate_sync(env.get_dataset(n=3, seed=2), client=config, model="m")
        env.make_dataset(results)
        assert env.get_eval_dataset()[0]["prompt"][0]["content"] == "Short."
    group = vf.EnvGroup([env, vf.SingleTurnEnv(dataset=stored, rubric=vf.Rubric(right))])
    group.evaluate_sync(client=config, model="m", num_examples=4)
    group.get_dataset()
format_dataset(stored, "Short.")
assert not datasets.are_progress_bars_disabled()
"""


@pytest.mark.exhaustive
def test_datasets_of_hugging_face_are_used_without_their_remarks(tmp_path: Path) -> None:
    """In memory, on disk, as views and made when needed; and ``datasets`` draws bars for others afterwards, as before."""
    datasets.Dataset.from_list([{"question": f"{i}?", "answer": "b"} for i in range(8)]).save_to_disk(tmp_path / "rows")
    assert strange_lines("-c", PROGRAM, tmp_path / "rows", cwd=tmp_path) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_show_their_progress_only(example: Path, tmp_path: Path) -> None:
    assert strange_lines(example, cwd=tmp_path) == []
