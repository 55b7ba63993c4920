"""Ordinary work writes to the standard error stream what this library has to say, and nothing of what others warn of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pytest

import verifiers_compat as vf
from vfgym.testing import ModelServer

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


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Python keeps what it compiles: empty at first, so that each package is compiled by the first case that imports it."""
    return tmp_path_factory.mktemp("compiled")


@pytest.mark.parametrize(
    ("env_id", "needed"),
    [
        ("gymnasium/Blackjack-v1", "gymnasium"),
        ("reasoning-gym/leg_counting-v0", "reasoning_gym"),
        ("textarena/TicTacToe-v0", "textarena"),
        ("textarena/Hangman-v0", "textarena"),
        ("pettingzoo/chess-v6", "pettingzoo"),
        ("pettingzoo/texas_holdem_no_limit-v6", "pettingzoo"),
    ],
)
def test_an_evaluation_shows_its_progress_only(env_id: str, needed: str, tmp_path: Path, compiled: Path) -> None:
    """Also where Python compiles the packages meanwhile, as it does in a virtual environment that uv has made."""
    pytest.importorskip(needed)
    arguments = ["-m", "vfgym", "eval", env_id, "--agent", "random", "--num-examples", "3"]
    assert strange_lines(*arguments, cwd=tmp_path, PYTHONPYCACHEPREFIX=str(compiled), PYTHONDONTWRITEBYTECODE="") == []


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


def test_datasets_of_hugging_face_are_used_without_their_remarks(tmp_path: Path) -> None:
    """In memory, on disk, as views and made when needed; and ``datasets`` draws bars for others afterwards, as before."""
    datasets.Dataset.from_list([{"question": f"{i}?", "answer": "b"} for i in range(8)]).save_to_disk(tmp_path / "rows")
    assert strange_lines("-c", PROGRAM, tmp_path / "rows", cwd=tmp_path) == []


TASKS = """
import datasets
import verifiers_compat as vf


def right(completion, answer):
    return float(completion[-1]["content"] == answer)


def load_environment():
    rows = datasets.Dataset.from_list([{"question": f"{i}?", "answer": "b"} for i in range(4)])
    return vf.SingleTurnEnv(dataset=rows, system_prompt="Short.", rubric=vf.Rubric(right))
"""


def test_vf_eval_shows_its_progress_only(tmp_path: Path) -> None:
    (tmp_path / "short_answers.py").write_text(TASKS)
    code = "import sys; sys.path.insert(0, ''); from verifiers_compat.cli.commands.eval import main; main()"
    with ModelServer(models={"m": lambda request: "b"}) as server:
        arguments = ["short_answers", "-m", "m", "-b", server.openai_url, "-n", "4", "-r", "2", "-s"]
        assert strange_lines("-c", code, *arguments, cwd=tmp_path, OPENAI_API_KEY="none") == []


def test_tasks_on_disk_are_made_once_for_each_prompt(tmp_path: Path) -> None:
    """`get_dataset` finds in the cache what an equal environment has made, and nothing of one with another prompt."""
    datasets.Dataset.from_list([{"question": "1?", "answer": "b"}]).save_to_disk(tmp_path / "rows")

    def first_prompt(**prompt: Any) -> list[str]:
        env = vf.SingleTurnEnv(dataset=datasets.load_from_disk(tmp_path / "rows"), **prompt)
        return [message["content"] for message in env.get_dataset()[0]["prompt"]]

    few_shot = [{"role": "user", "content": "0?"}, {"role": "assistant", "content": "a"}]
    for _ in range(2):
        assert first_prompt(system_prompt="Short.") == ["Short.", "1?"]
        assert first_prompt(system_prompt="Long.") == ["Long.", "1?"]
        assert first_prompt(few_shot=few_shot) == ["0?", "a", "1?"]
    assert len([*(tmp_path / "rows").glob("cache-*.arrow")]) == 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_show_their_progress_only(example: Path, tmp_path: Path) -> None:
    assert strange_lines(example, cwd=tmp_path) == []
