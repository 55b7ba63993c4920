"""Stop conditions that can be awaited, and read as what they say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROW, Countdown, Talk
from tests.verifiers_compat.models import rolled_out

STOPS = {
    "has_error": vf.MultiTurnEnv,
    "prompt_too_long": vf.MultiTurnEnv,
    "max_turns_reached": vf.MultiTurnEnv,
    "timeout_reached": vf.MultiTurnEnv,
    "max_total_completion_tokens_reached": vf.MultiTurnEnv,
    "has_final_env_response": vf.MultiTurnEnv,
    "no_tools_called": vf.ToolEnv,
}


@pytest.mark.parametrize("name", STOPS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_stop_conditions_may_ask_their_base(name: str, is_async: bool) -> None:
    """Awaited, as documented, and plainly; with whatever arguments they were given."""
    asked: list[bool] = []

    class Asking(STOPS[name]):  # type: ignore[misc]
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            return [{"role": "user", "content": "go on"}]

    async def awaits(self: Any, state: vf.State, **kwargs: Any) -> bool:
        asked.append(await getattr(super(Asking, self), name)(state, **kwargs))
        return asked[-1]

    def asks(self: Any, state: vf.State, **kwargs: Any) -> bool:
        asked.append(bool(getattr(super(Asking, self), name)(state)))
        return asked[-1]

    own = awaits if is_async else asks
    own.__name__ = name
    setattr(Asking, name, vf.stop(own))
    env = Asking(dataset=[ROW], max_turns=2)
    state = await rolled_out(env, "a", "b")
    assert (state["error"], state["stop_condition"]) == (None, name if name == "no_tools_called" else "max_turns_reached")
    assert asked[-1] is (state["stop_condition"] == name)
    assert await getattr(super(Asking, env), name)(state) is asked[-1]


@pytest.mark.parametrize("turns", [0, 2])
async def test_what_a_stop_condition_says_equals_its_truth_value(turns: int) -> None:
    env = Talk(dataset=[ROW], max_turns=2)
    asked: Any = env.max_turns_reached
    holds = asked(vf.State(trajectory=[None] * turns))
    assert (holds == bool(turns), holds == (not turns), holds != bool(turns), holds is None) == (True, False, False, False)
    assert holds == asked(vf.State(trajectory=[None] * turns))
    assert {holds, bool(turns)} == {await holds}


async def test_stop_conditions_can_be_awaited_from_outside() -> None:
    game = vf.GymEnv(Countdown, action_parser=int, num_train_episodes=1)
    state = await rolled_out(game, "1", "1", "1")
    assert state["stop_condition"] == "is_done"
    assert await game.is_done(state) is True
    assert await asyncio.create_task(game.has_error(state)) is False
    assert game.is_done(state)
    assert not game.has_error(state)
