"""`RubricGroup`: the rewards of several rubrics, their parsers, and the time that they take."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROW, look, right, single
from tests.verifiers_compat.models import Model, calling, evaluated


async def test_advantages_come_from_the_whole_reward_whatever_rubrics_are_added() -> None:
    env = vf.ToolEnv(tools=[look], dataset=[ROW], rubric=vf.RubricGroup([vf.Rubric(right), vf.Rubric(lambda: 0.5)]))
    env.add_rubric(vf.Rubric(lambda completion: float(len(completion)), weights=[0.1]))
    call = calling(("look", {"key": "a"}))

    def answer(number: int, state: Any) -> Any:
        return ["2", call, "no"][number]

    outputs = (await env.evaluate(Model(answer), "m", rollouts_per_example=2, max_concurrent=1, state_columns=["advantage", "trajectory"]))[
        "outputs"
    ]
    rewards = [output["reward"] for output in outputs]
    assert rewards == pytest.approx([1.6, 0.8])
    assert [output["advantage"] for output in outputs] == pytest.approx([0.4, -0.4])
    for output in outputs:
        for step in output["trajectory"]:
            assert (step["reward"], step["advantage"]) == (output["reward"], output["advantage"])


async def test_a_rubrics_own_cleanup_that_fails_stops_nothing() -> None:
    class Failing(vf.Rubric):
        def cleanup(self, state: vf.State) -> None:
            raise RuntimeError("this one fails")

    (output,) = await evaluated(single(rubric=vf.RubricGroup([Failing(), vf.Rubric(right)])), "2", state_columns=["cleanup_errors"])
    assert (output["reward"], output["error"]) == (1.0, None)
    assert list(output["cleanup_errors"].values()) == ["RuntimeError('this one fails')"]
