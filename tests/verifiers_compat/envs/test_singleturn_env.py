"""`SingleTurnEnv`: one answer, which ends the rollout whatever it is."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import look, single
from tests.verifiers_compat.models import Model, calling, evaluated, response


@pytest.mark.parametrize(
    ("answer", "reward", "is_truncated"),
    [
        ("2", 1.0, False),
        ("", 0.0, False),
        (response("2", finish_reason="length"), 1.0, True),
        (calling(("look", {"key": "a"})), 0.0, False),
    ],
)
async def test_one_answer_is_scored_and_ends_the_rollout(answer: Any, reward: float, is_truncated: bool) -> None:
    (output,) = await evaluated(single(tool_defs=[vf.Tool(name="look", description="", parameters={})]), answer)
    assert (output["stop_condition"], output["is_completed"], output["is_truncated"]) == ("max_turns_reached", True, is_truncated)
    assert (output["error"], len(output["completion"]), output["metrics"]) == (None, 1, {"right": reward, "num_turns": 1.0})


async def test_a_model_that_fails_is_its_error() -> None:
    env = single()
    state = await env.rollout(env.get_dataset()[0], Model(lambda number, state: vf.ModelError("down")), "m")
    assert (type(state["error"]), state["stop_condition"], state["completion"]) == (vf.ModelError, "has_error", [])


def test_it_has_one_turn_and_no_tools_of_its_own() -> None:
    env = single()
    assert (env.max_turns, env.tool_defs, isinstance(env, vf.MultiTurnEnv)) == (1, [], True)
    with pytest.raises(TypeError, match="max_turns"):
        single(max_turns=2)
    assert single(tools=[look]).tools == [look]  # as any argument that is unknown
