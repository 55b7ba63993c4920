"""What several runs say together: what each is called, what is wrong with them, on which scales they are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.view.runs import failed_row, reports_of, row
from vfgym.view.findings import find, labels_of, number_rows
from vfgym.view.scales import histogram_of, scale_of


@pytest.mark.parametrize(
    ("each", "labels"),
    [
        ([{"model": "a"}, {"model": "b"}], ["a", "b"]),
        ([{"model": "a", "env_id": "x"}, {"model": "a", "env_id": "y"}], ["a", "a"]),
        ([{"model": "a", "sampling_args": {"temperature": t, "top_p": 1}} for t in (0, 0.5)], ["a (temperature 0)", "a (temperature 0.5)"]),
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
    other = [row(0, reward=1.0), row(1, reward=0.0), row(3, reward=9.0)]
    (both,) = find(reports_of(tmp_path / "two", one, other)).environments
    assert [(task.example_id, task.means) for task in both.tasks] == [(1, [0.5, 0.0]), (0, [1.0, 1.0]), (2, [0.25, None]), (3, [None, 9.0])]


def test_numbers_stand_in_a_table(tmp_path: Path) -> None:
    tokens = {"input_tokens": 100.0, "output_tokens": 20.0}
    one, other = reports_of(tmp_path, [row(0, token_usage=tokens), row(1, reward=0.0)], [row(0), failed_row(1)], cost=0.25)
    rows = dict(number_rows([one, other]))
    assert rows["mean reward (95 %)"] == ["0.500 (0.013 to 0.987)", "-"]
    assert (rows["mean of those that ended by themselves"], rows["failed"]) == (["-", "1.000"], ["-", "1"])
    assert (rows["input tokens of a rollout"], rows["cost"]) == (["50", "-"], ["0.25", "0.25"])
    assert "missing" not in rows


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
