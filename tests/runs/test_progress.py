"""How far a run is: what is counted, and what is shown of it."""

from __future__ import annotations

from typing import Any

import pytest

import vfgym
from tests.models import answer
from vfgym import ModelAgent, Rubric, SingleTurnEnv
from vfgym.results import RolloutOutput
from vfgym.runs import Progress
from vfgym.testing import ScriptedClient


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


def test_a_line_tells_reward_failures_tokens_cost_rate(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": f"Is it {number}?"} for number in range(5)]
    env = SingleTurnEnv(dataset=rows, rubric=Rubric(lambda: 1.0))
    agent = ModelAgent(ScriptedClient([answer("7", completion_tokens=999)]), "scripted")
    vfgym.evaluate(env, agent, prices={"scripted": {"input": 0, "output": 1000}})
    last = capsys.readouterr().err.splitlines()[-1]
    assert "5/5 (100%), reward 1.000, 0 failed, 5k tokens, cost 5, " in last
    assert last.rstrip().endswith(("/s", "/min"))
