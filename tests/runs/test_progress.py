"""How far a run is: what is counted, and what is shown of it."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import vfgym
from tests.models import answer
from vfgym import ModelAgent, Rubric, SingleTurnEnv
from vfgym.results import RolloutOutput
from vfgym.runs import Progress
from vfgym.runs.progress import report_progress, short_number
from vfgym.testing import ScriptedClient

progress_module = sys.modules["vfgym.runs.progress"]


def row(number: int, **fields: Any) -> RolloutOutput:
    return RolloutOutput(
        {"example_id": number, "rollout": 0, "reward": 1.0, "failed": False, "counted_reward": 1.0, "error": None, **fields}
    )


def test_tokens_cost_and_rate_are_counted_and_what_is_unknown_stays_unknown() -> None:
    progress = Progress(4)
    assert (progress.tokens, progress.cost, progress.rate, progress.seconds_left) == (0, None, None, None)
    spent = {"requests": 2, "input_tokens": 1000.0, "output_tokens": 500.0, "cost": 0.25}
    progress.add(row(0, spent=spent))
    progress.add(row(1, spent=spent))
    assert (progress.tokens, progress.cost) == (3000.0, 0.5)
    assert progress.summary == "reward 1.000, 0 failed, 3k tokens, cost 0.5"
    assert progress.rate is not None
    assert progress.seconds_left is not None
    progress.add(row(2, spent={**spent, "cost": None}))
    progress.add(row(3, spent=spent))
    assert progress.cost is None
    assert progress.summary == "reward 1.000, 0 failed, 6k tokens"
    progress = Progress(1)
    progress.add(row(0, token_usage={"input_tokens": 10.0, "output_tokens": 5.0, "judge_input_tokens": 3.0, "judge_output_tokens": 1.0}))
    assert (progress.tokens, progress.cost) == (19.0, None)
    progress = Progress(2)
    progress.add(row(0))
    progress.begin()
    assert progress.rate is None


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1k"), (12_345, "12.3k"), (10**6, "1M"), (10**9, "1G"), (2.5e12, "2.5e+03G")],
)
def test_numbers_of_things_have_three_digits(number: float, text: str) -> None:
    assert short_number(number) == text


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands where a test sets it."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.mark.parametrize(
    ("seconds", "pace", "left"),
    [(0.0, "", None), (0.0001, "20k/s", 0.0001), (0.2, "10/s", 0.2), (2.0, "1/s", 2.0), (1.6, "1.25/s", 1.6), (8.0, "15/min", 8.0)],
)
def test_the_pace_is_that_of_what_came_since_it_began(seconds: float, pace: str, left: float | None, clock: SimpleNamespace) -> None:
    progress = Progress(5, began=0.0)
    progress.add(row(0))
    progress.begin()
    for number in (1, 2):
        progress.add(row(number))
    clock.now += seconds
    assert (progress.pace, progress.seconds_left) == (pace, left if left is None else pytest.approx(left))
    progress.total = 2  # more than was expected
    assert progress.seconds_left == (None if left is None else 0)


@pytest.mark.parametrize("is_displayed", [True, False])
def test_rows_of_before_count_and_are_not_told_and_each_new_one_is(
    is_displayed: bool, clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[Any] = []
    told: list[Any] = []
    rows = [row(number, reward=float(number), counted_reward=10.0 * number) for number in range(4)]
    reporting = report_progress(
        20,
        "Quiz",
        is_displayed=is_displayed,
        callback=lambda row, progress: told.append((row["example_id"], progress.done, progress.avg_reward)),
        on_start=lambda progress: started.append((progress.total, progress.done)),
        done=rows[:2],
        mean_of="reward",
    )
    with contextlib.suppress(ZeroDivisionError), reporting as report:
        report([])
        clock.now += 2.0
        report(rows[2:])
        raise ZeroDivisionError
    assert (started, told) == ([(20, 2)], [(2, 3, 1.0), (3, 4, 1.5)])
    lines = capsys.readouterr().err.splitlines()
    expected = ["Quiz: 4/20 (20%), reward 1.500, 0 failed, 2.0 s, 1/s, 16 s left"]
    assert lines[-1:] == (expected if is_displayed else [])


@pytest.mark.parametrize(
    ("steps", "printed"),
    [
        ([(1.0, 1)], ["1/10"]),
        ([(0.9, 3)], ["3/10"]),  # at the end alone
        ([(0.9, 3), (0.2, 0), (0.0, 1)], ["4/10"]),
        ([(4.9, 0), (0.0, 0)], []),
        ([(1.0, 1), (0.5, 1), (0.5, 1)], ["1/10", "3/10"]),
    ],
)
def test_a_line_is_printed_now_and_then_and_at_the_end_where_there_is_news(
    steps: list[tuple[float, int]], printed: list[str], clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with report_progress(10, "Quiz", is_displayed=True, callback=None) as report:
        for seconds, num_rows in steps:
            clock.now += seconds
            report([row(0)] * num_rows)
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == printed


def test_a_line_tells_reward_failures_tokens_cost_rate(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": f"Is it {number}?"} for number in range(5)]
    env = SingleTurnEnv(dataset=rows, rubric=Rubric(lambda: 1.0))
    agent = ModelAgent(ScriptedClient([answer("7", completion_tokens=999)]), "scripted")
    vfgym.evaluate(env, agent, prices={"scripted": {"input": 0, "output": 1000}})
    last = capsys.readouterr().err.splitlines()[-1]
    assert "5/5 (100%), reward 1.000, 0 failed, 5k tokens, cost 5, " in last
    assert last.rstrip().endswith(("/s", "/min"))
