"""What a run gives, as it is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vfgym.endings import Ending
from vfgym.results.outputs import RunOutputs, describe_endings


def results(count: int = 1, rows: list[dict[str, Any]] | None = None, **metadata: Any) -> RunOutputs:
    made = [{"example_id": number, "reward": 0.5, "stop_condition": "done"} for number in range(count)]
    known = {"env_id": "game", "model": "m", "avg_reward": 0.5, "num_examples": count, "rollouts_per_example": 1}
    return RunOutputs(outputs=made if rows is None else rows, metadata={**known, **metadata})


def test_it_is_a_dict_like_any_other() -> None:
    assert results() == dict(results())
    assert json.dumps(results()) == json.dumps(dict(results()))


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ({}, "1 rollouts of game by m: reward 0.5, 0 failed"),
        ({"avg_reward": 0.0}, "1 rollouts of game by m: reward 0, 0 failed"),
        ({"avg_reward": None}, "1 rollouts of game by m: no mean reward, 0 failed"),
        ({"interval": [0.0, 0.98765]}, "1 rollouts of game by m: reward 0.5 (95 %: 0 to 0.988), 0 failed"),
        ({"num_examples": 3, "rollouts_per_example": 2}, "1 of 6 rollouts of game by m: reward 0.5, 0 failed"),
        ({"num_rollouts": 4}, "1 of 4 rollouts of game by m: reward 0.5, 0 failed"),
        ({"model": "x\ny"}, r"1 rollouts of game by x\ny: reward 0.5, 0 failed"),
    ],
)
def test_the_first_line_tells_what_came_out(metadata: dict[str, Any], title: str) -> None:
    assert repr(results(**metadata)).splitlines()[0] == f"<{title}>"
    assert results(**metadata)._repr_html_().count(title) == 1


def test_each_rollout_has_a_line() -> None:
    rows = [
        {"example_id": 0, "rollout": None, "reward": 1.0, "stop_condition": "won\n"},
        {"example_id": 0, "rollout": 1, "reward": float("nan"), "error": {"error": "KeyError"}, "stop_condition": "has_error"},
        {"example_id": 7, "reward": -0.25, "stop_condition": None},
        {"example_id": 8, "reward": 0, "stop_condition": "s" * 41},
        {"example_id": 9, "reward": 0, "stop_condition": "s" * 40},
    ]
    lines = repr(results(rows=rows)).splitlines()
    cells = [r"0.0 1 won\n", "0.1 nan KeyError", "7.0 -0.25 ", f"8.0 0 {'s' * 39}…", f"9.0 0 {'s' * 40}"]
    assert lines[1:] == [f"  {each}" for each in cells]


@pytest.mark.parametrize(("count", "lines", "rest"), [(20, 21, None), (21, 22, "  and 1 more"), (23, 22, "  and 3 more")])
def test_twenty_are_listed_and_the_others_counted(count: int, lines: int, rest: str | None) -> None:
    shown = repr(results(count)).splitlines()
    assert len(shown) == lines
    assert shown[20].startswith("  19.0 ")
    assert rest is None or shown[-1] == rest
    assert (" more" in results(count)._repr_html_()) == (rest is not None)


def test_nothing_yet() -> None:
    assert repr(RunOutputs()).startswith("<0 rollouts of ")


@pytest.mark.parametrize(
    ("endings", "text"),
    [
        ([], "0 failed"),
        ([Ending.TERMINATED, Ending.TRUNCATED], "0 failed"),
        ([Ending.CUT, Ending.CUT], "0 failed, 2 cut"),
        ([Ending.POLICY_FAILED, Ending.ENVIRONMENT_FAILED], "2 failed"),
        ([Ending.INFRASTRUCTURE_FAILED, Ending.POLICY_FAILED, Ending.CUT], "2 failed (1 missing), 1 cut"),
    ],
)
def test_endings_are_counted(endings: list[Ending], text: str) -> None:
    assert describe_endings(iter(endings)) == text
