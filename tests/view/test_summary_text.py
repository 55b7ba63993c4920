"""What runs say together as lines of text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.view.runs import reports_of, row
from vfgym.view.findings import find
from vfgym.view.summary_text import interval_picture, summary_lines


@pytest.mark.parametrize(
    ("place", "means", "rest"),
    [
        (0, ["> a-model (0) ··├──●─────┤············ 0.250", "  a-model (1) ···········├────●───┤··· 0.719"], []),
        (
            1,
            ["  a-model (0) ··├──●─────┤············ 0.250", "> a-model (1) ···········├────●───┤··· 0.719"],
            [*[f"! 1 of 8: reward function f{number} raised, and scored 0: KeyError" for number in range(4)], "! and 2 further troubles"],
        ),
    ],
)
def test_runs_are_compared_and_more_is_said_of_one(tmp_path: Path, place: int, means: list[str], rest: list[str]) -> None:
    last = row(7, reward=0.5, metrics_errors={f"f{number}": "KeyError" for number in range(6)})
    runs = [row(task, reward=0.25) for task in range(8)], [*(row(task, reward=0.75) for task in range(7)), last]
    reports = reports_of(tmp_path, *runs, reward_range=[0, 1])
    env, headline, *lines = summary_lines(reports, find(reports), place)
    assert (env, headline[:60]) == ("a-game-v0", "a-model (1) and a-model (0) cannot be told apart, +0.469 (-0")
    assert [line.partition(" (0.")[0] for line in lines[:2]] == means
    assert lines[2:] == ["              0                      1", "8 rollouts of 8 tasks, 1.0 turns each", *rest]


def test_long_names_and_troubles_are_shortened_to_one_line(tmp_path: Path) -> None:
    rows = [row(0, metrics_errors={"f": "a\n" + "b" * 300}), row(1, ending="cut", stop_condition="quit", counted_reward=0.0)]
    reports = reports_of(tmp_path, rows, model="m" * 40)
    lines = list(summary_lines(reports, find(reports), 0))
    assert f"  {'m' * 27}… " in "\n".join(lines)
    cut, raised = sorted(line for line in lines if line.startswith("! 1 of 2: "))
    assert cut == "! 1 of 2: cut by a limit of the run: quit"
    assert raised == ("! 1 of 2: reward function f raised, and scored 0: a\\n" + "b" * 300)[:200]
    reports = reports_of(tmp_path / "2", rows, model="m" * 28)
    assert f"  {'m' * 28} " in "\n".join(summary_lines(reports, find(reports), 0))


def test_a_run_that_is_alone_has_no_marker_and_remarks_come_last(tmp_path: Path) -> None:
    reports = reports_of(tmp_path, [row(task, reward=task % 2) for task in range(4)], num_examples=8)
    headline, picture, note, *remarks = list(summary_lines(reports, find(reports), 0))[1:]
    assert headline.startswith("a-model")
    assert picture.startswith("  a-model ")
    assert note == "4 of 8 rollouts of 4 tasks, 1.0 turns each"
    assert remarks == [f"! {remark}" for remark in reports[0].remarks] != []


@pytest.mark.parametrize(
    ("value", "interval", "scale", "picture"),
    [
        (0.0, None, [0.0, 1.0], "●" + "·" * 23),
        (1.0, None, [0.0, 1.0], "·" * 23 + "●"),
        (0.0, (-1.0, 1.0), [0.0, 1.0], "●" + "─" * 22 + "┤"),
        (1.0, (0.0, 2.0), [0.0, 1.0], "├" + "─" * 22 + "●"),
        *[(value, None, [0.0, 1.0], "·" * 24) for value in (None, float("nan"))],
        (0.5, None, None, "·" * 24),
    ],
)
def test_a_picture_of_an_interval(value: float | None, interval: tuple[float, float] | None, scale: list[float], picture: str) -> None:
    assert interval_picture(value, interval, scale) == picture
