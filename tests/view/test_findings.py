"""What several runs say together: what each is called, what is wrong with them, on which scales they are drawn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.view.runs import failed_row, reports_of, row
from vfgym.view.findings import TaskRow, find, labels_of, note_on, number_rows
from vfgym.view.scales import histogram_of, scale_of

ALL, NOTHING = ([row(task, reward=reward) for task in range(8)] for reward in (1.0, 0.0))


@pytest.mark.parametrize(
    ("each", "labels"),
    [
        ([{"model": "a"}, {"model": "b"}], ["a", "b"]),
        ([{"model": "a", "env_id": "x"}, {"model": "a", "env_id": "y"}], ["a", "a"]),
        ([{"model": "a", "sampling_args": {"temperature": t, "top_p": 1}} for t in (0, 0.5)], ["a (temperature 0)", "a (temperature 0.5)"]),
        ([{"model": "a", "limits_each": {"turns": t}, "env_args": {"names": ["x"]}} for t in (1, 2)], ["a (turns 1)", "a (turns 2)"]),
        ([{"model": "a", "env_args": {"x": "s" * n}} for n in (57, 58)], [f"a (x {'s' * 57})", f"a (x {'s' * 58})"]),
        ([{"model": "a", "env_args": {"x": "s" * n}} for n in (57, 59)], ["a (run 1)", "a (run 2)"]),
        ([{"model": "a", "env_args": {"x": t, "y": t}} for t in (True, None)], ["a (x true, y true)", "a (x null, y null)"]),
        ([{"model": "a", "env_args": {"size": 4}}, {"model": "a"}], ["a (size 4)", "a (size -)"]),
        ([{"model": "a", "env_args": {"prompt": "p" * 100}}, {"model": "a"}], ["a (run 1)", "a (run 2)"]),
        ([{"model": "a", "path_to_save": Path("runs/one")}, {"model": "a", "path_to_save": Path("runs/two")}], ["a (one)", "a (two)"]),
        (
            [{"model": "a", "path_to_save": Path("x/one")}, {"model": "a", "path_to_save": Path("y/one")}],
            ["a (one) (run 1)", "a (one) (run 2)"],
        ),
        ([{}, {}], ["an agent (run 1)", "an agent (run 2)"]),
    ],
)
def test_runs_of_one_agent_are_told_apart(each: list[dict[str, Any]], labels: list[str]) -> None:
    assert labels_of(each) == labels


def test_each_run_is_compared_with_the_first_one_of_its_environment(tmp_path: Path) -> None:
    first = reports_of(tmp_path / "x", [row(0)], [row(0)], env_id="x")
    second = reports_of(tmp_path / "y", [row(0)], [row(0)], [row(0)], env_id="y")
    x, y = find([first[0], *second, first[1]]).environments
    assert (x.runs, [(pair["a"], pair["b"]) for pair in x.pairs]) == ([0, 4], [(0, 4)])
    assert (y.runs, [(pair["a"], pair["b"]) for pair in y.pairs]) == ([1, 2, 3], [(1, 2), (1, 3)])


def test_tasks_are_listed_where_runs_differ_most_first(tmp_path: Path) -> None:
    one = [row(0, reward=1.0), row(1, reward=0.5), row(2, reward=0.25)]
    (alone,) = find(reports_of(tmp_path / "one", one)).environments
    assert [task.example_id for task in alone.tasks] == [2, 1, 0]
    (odd,) = find(reports_of(tmp_path / "odd", [row(0), row(1, reward=math.nan), row(2, reward=-1.0), failed_row(3)])).environments
    assert [task.example_id for task in odd.tasks] == [1, 3, 2, 0]
    other = [row(0, reward=1.0), row(1, reward=0.0), row(3, reward=9.0)]
    (both,) = find(reports_of(tmp_path / "two", one, other)).environments
    assert both.tasks == [
        TaskRow(1, [0.5, 0.0], [1, 1]),
        TaskRow(0, [1.0, 1.0], [0, 0]),
        TaskRow(2, [0.25, None], [2, None]),
        TaskRow(3, [None, 9.0], [None, 2]),
    ]
    infinite = [row(0, reward=math.inf), *other[1:]]
    assert [task.spread for task in find(reports_of(tmp_path / "three", one, infinite)).environments[0].tasks] == [0.5, 0.0, 0.0, 0.0]


def test_tasks_of_one_id_that_are_not_one_task_stand_apart(tmp_path: Path) -> None:
    """Of runs whose datasets are in another order; rows of others have no fingerprints."""
    runs = [[{**row(0, reward=reward), "fingerprint": fingerprint}] for reward, fingerprint in ((1.0, "a"), (0.5, "b"), (0.0, None))]
    (found,) = find(reports_of(tmp_path, *runs)).environments
    assert {tuple(task.means) for task in found.tasks} == {(1.0, None, None), (None, 0.5, None), (None, None, 0.0)}


@pytest.mark.parametrize(
    ("runs", "metadata", "headlines"),
    [
        ([[]], {"num_examples": 3}, ["a-model: 0 of 3 rollouts, no mean yet"]),
        ([[row()]], {"num_examples": 2}, ["a-model: 1 of 2 rollouts, no mean yet"]),
        ([[row(), failed_row()]], {}, ["a-model: no mean"]),
        ([[row(), row(0, 1, 0.5)]], {}, ["a-model earns 0.750 on average over 1 task (an interval needs two tasks)"]),
        (
            [[row(0, reward=7.0), row(1, reward=7.0)]],
            {},
            ["a-model earns 7.000 on average over 2 tasks (no interval, since nothing varies and no range of rewards is known)"],
        ),
        ([[row(), row(1, reward=0.0)]], {}, ["a-model earns 0.500 on average over 2 tasks (95 % interval: 0.013 to 0.987)"]),
        ([ALL, NOTHING, ALL], {}, ["a-model (1) is worse than a-model (0)", "a-model (2) and a-model (0) cannot be told apart"]),
        ([NOTHING, [], ALL], {}, ["a-model (1) cannot be compared with a-model (0)", "a-model (2) is better than a-model (0)"]),
    ],
)
def test_what_was_found_is_said_in_a_few_words(
    tmp_path: Path, runs: list[list[dict[str, Any]]], metadata: dict[str, Any], headlines: list[str]
) -> None:
    (environment,) = find(reports_of(tmp_path, *runs, **metadata)).environments
    assert environment.headlines == headlines


@pytest.mark.parametrize(
    ("rewards", "reward_range", "scales"),
    [
        ([(0.0, 1.0)], None, [[0.0, 0.2, 0.4, 0.6, 0.8, 1.0], None, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]]),
        ([(0.5,)], [0, 1], [[0.0, 0.2, 0.4, 0.6, 0.8, 1.0], None, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]]),
        ([(0.5,)], None, [[0.47, 0.48, 0.49, 0.5, 0.51, 0.52, 0.53], None, [0.47, 0.48, 0.49, 0.5, 0.51, 0.52, 0.53]]),
        ([(1.0,), (3.0,)], [0, 20], [[0.0, 5.0, 10.0, 15.0, 20.0], [0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 5.0, 10.0, 15.0, 20.0]]),
        ([(1.0,), (3.0,)], [0, 20.5], [[1.0, 1.5, 2.0, 2.5, 3.0], [0.0, 0.5, 1.0, 1.5, 2.0], [1.0, 1.5, 2.0, 2.5, 3.0]]),
        ([(3.0,), (1.0,)], [0, math.inf], [[1.0, 1.5, 2.0, 2.5, 3.0], [-2.0, -1.5, -1.0, -0.5, 0.0], [1.0, 1.5, 2.0, 2.5, 3.0]]),
        ([(math.nan,)], [0, 1], [None, None, None]),
    ],
)
def test_scales_show_the_range_of_rewards_where_it_is_not_much_wider(
    tmp_path: Path, rewards: list[tuple[float, ...]], reward_range: list[float] | None, scales: list[list[float] | None]
) -> None:
    runs = [[row(task, reward=reward) for task, reward in enumerate(each)] for each in rewards]
    (environment,) = find(reports_of(tmp_path, *runs, reward_range=reward_range)).environments
    assert [environment.mean_scale, environment.difference_scale, environment.reward_scale] == scales


def test_numbers_stand_in_a_table_and_in_a_line(tmp_path: Path) -> None:
    tokens = {"input_tokens": 2000.0, "output_tokens": 400.0}
    one, other = reports_of(
        tmp_path / "two",
        [row(0, token_usage=tokens, metrics={"num_turns": 2.0, "x": 0.0}), row(1, reward=0.0)],
        [row(0), failed_row(1), row(2, ending="cut"), failed_row(3, ending="infrastructure_failed")],
        cost=0.0,
    )
    assert number_rows([one, other]) == [
        ("mean reward (95 %)", ["0.500 (0.013 to 0.987)", "-"]),
        ("mean of those that ended by themselves", ["-", "1.000"]),
        ("rollouts", ["2", "4"]),
        ("tasks", ["2", "4"]),
        ("failed", ["-", "2"]),
        ("cut", ["-", "1"]),
        ("missing", ["-", "1"]),
        ("num_turns", ["1.500 (-4.853 to 7.853)", "1.000 (0.158 to 1.000)"]),
        ("x", ["0.000", "-"]),
        ("input tokens of a rollout", ["1,000", "-"]),
        ("output tokens of a rollout", ["200", "-"]),
        ("cost", ["0", "0"]),
        ("seconds of a rollout", ["0.50", "0.50"]),
        ("seconds of the run", ["3.00", "3.00"]),
    ]
    assert note_on(one) == "2 rollouts of 2 tasks, 1.5 turns each, 1,200 tokens each, cost 0"
    assert note_on(other) == "4 rollouts of 4 tasks, 1 failed, 1 cut, 1 missing, 1.0 turns each, cost 0"
    (several,) = reports_of(tmp_path / "one", [row(metrics={}), row(0, 1, 0.0, metrics={})], rollouts_per_example=2, time=0)
    assert number_rows([several])[3:] == [
        *(("pass@1", ["0.500"]), ("pass@2", ["1.000"]), ("pass^1", ["0.500"]), ("pass^2", ["0.000"])),
        ("seconds of a rollout", ["0.50"]),
    ]
    assert note_on(several) == "2 rollouts of 1 task"


def test_scales_have_round_ticks_around_all_values() -> None:
    assert scale_of([]) is None
    assert scale_of([float("nan"), float("inf")]) is None
    assert scale_of([1e308, -1e308]) is None, "which are further apart than any number"
    for values in ([0.0], [1e-320, 0.0], [-1e6, 0.0], [0.123456, 0.123457], [3.0, float("nan"), 17.0]):
        scale = scale_of(values)
        assert scale is not None
        finite = [value for value in values if value == value]
        assert scale[0] <= min(finite) <= max(finite) <= scale[-1]
        assert (scale, sum(histogram_of(values, scale))) == (sorted(set(scale)), len(finite))
