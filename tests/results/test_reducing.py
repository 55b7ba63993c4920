"""`reduce_rollouts`: the rollouts of each task as one number, and the mean of these with its interval."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

import vfgym
from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs, Reduced, load_results, reduce_rollouts
from vfgym.results.intervals import interval_of

SCORES = {0: [0.0, 0.5, 1.0], 1: [1.0, 1.0, 1.0], 2: [0.0, 0.0, 0.25], 3: [0.5, 0.5, 0.0]}
"""What the rollouts of each task earn."""


def run(scores: dict[int, list[float]] = SCORES, **kwargs: Any) -> GenerateOutputs:
    rows = [{"question": f"{task}", "answer": f"{task}"} for task in scores]
    left = {task: list(numbers) for task, numbers in scores.items()}
    rubric = vfgym.Rubric(lambda answer: left[int(answer)].pop(0))
    env = vfgym.SingleTurnEnv(dataset=rows, rubric=rubric, pass_threshold=0.5)
    options = {"rollouts_per_example": 3, "max_concurrent": 1, "progress": False}
    return vfgym.evaluate(env, lambda observation, info: "x", **{**options, **kwargs})


@pytest.mark.parametrize(
    ("reducer", "per_task"),
    [
        ("mean", [statistics.fmean(numbers) for numbers in SCORES.values()]),
        ("median", [0.5, 1.0, 0.0, 0.5]),
        ("max", [1.0, 1.0, 0.25, 0.5]),
        ("at_least_1", [1.0, 1.0, 0.0, 1.0]),
        ("at_least_2", [1.0, 1.0, 0.0, 1.0]),
        ("at_least_3", [0.0, 1.0, 0.0, 0.0]),
        ("at_least_4", [0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_each_task_is_one_number_and_one_observation(reducer: str, per_task: list[float], tmp_path: Path) -> None:
    played = run(results_path=tmp_path / "run")
    value_range = (0.0, 1.0) if reducer.startswith("at_least") else played["metadata"]["reward_range"]
    expected = Reduced(statistics.fmean(per_task), interval_of({task: [one] for task, one in enumerate(per_task)}, value_range), 4)
    assert reduce_rollouts(played, reducer) == expected
    assert reduce_rollouts(tmp_path / "run", reducer) == expected
    assert expected.interval is not None
    assert expected.interval[0] <= expected.value <= expected.interval[1]  # type: ignore[operator]


def test_the_mean_is_the_headline_and_one_task_has_no_interval() -> None:
    played = run()
    assert reduce_rollouts(played, "mean").value == pytest.approx(played["metadata"]["avg_reward"])
    assert reduce_rollouts(run({0: [0.0, 0.5, 1.0]}), "max") == Reduced(1.0, None, 1)


def test_what_is_not_known_is_not_told(tmp_path: Path) -> None:
    played = run(results_path=tmp_path / "run")
    lines = (tmp_path / "run" / "results.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "results.jsonl").write_text("".join(lines[:-1]))
    assert reduce_rollouts(load_results(tmp_path / "run"), "max") == Reduced(None, None, 0), "not all were played"
    outputs = [{**row} for row in played["outputs"]]
    outputs[0].update(ending="infrastructure_failed", failed=True)
    without = {**played, "outputs": outputs}
    assert reduce_rollouts(without, "max").num_tasks == 3, "a task of which a rollout is missing says nothing"  # type: ignore[arg-type]
    outputs[0].update(ending="policy_failed", counted_reward=None, failure_reward=None)
    assert reduce_rollouts(without, "max").value is None, "nobody says what it counts with"  # type: ignore[arg-type]


@pytest.mark.parametrize("reducer", ["min", "at_least_0", "at_least_", "at_least_x", "", None, "median "])
def test_other_reducers_are_refused(reducer: Any) -> None:
    with pytest.raises(ConfigurationError, match="a reducer is one of mean, median, max, at_least_K"):
        reduce_rollouts(run({0: [1.0, 1.0, 1.0]}), reducer)
