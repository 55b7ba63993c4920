"""The machine: what ends an episode is noticed whoever wrote it, and however."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym import MultiTurnEnv, State
from vfgym.errors import Error

ENDS = {
    "error": (Error("broken"), "has_error"),
    "final_env_response": ([], "has_final_env_response"),
    "prompt_too_long": (True, "prompt_too_long"),
    "timed_out": (True, "timeout_reached"),
}


@pytest.mark.parametrize("item", ENDS)
@pytest.mark.parametrize("write", [State.__setitem__, dict.__setitem__, dict.setdefault], ids=["state", "dict", "setdefault"])
def test_an_item_that_ends_an_episode_ends_it_before_the_environment_answers(item: str, write: Any) -> None:
    value, stop_condition = ENDS[item]

    class Ending(MultiTurnEnv):
        def add_trajectory_step(self, state: State, trajectory_step: Any) -> Any:
            dict.pop(state, item, None)  # so that `setdefault` writes
            write(state, item, value)
            return super().add_trajectory_step(state, trajectory_step)

        def env_response(self, messages: Any, state: State) -> Any:
            raise AssertionError("the episode is over")

    env = Ending(dataset=[{"question": "?"}])
    env.reset(seed=0)
    outcome = env.step("hello")
    assert outcome.terminated or outcome.truncated
    assert outcome.info["stop_condition"] == stop_condition
