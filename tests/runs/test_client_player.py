"""`Rollouts`: what becomes of rollouts that break off, and of the games that it opened."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym import ChatEnv, MultiTurnEnv, State, cleanup
from vfgym.errors import InfraError
from vfgym.messages import Message
from vfgym.runs.client_player import RolloutFailed, Rollouts
from vfgym.testing import ScriptedClient


class Arcade(MultiTurnEnv):
    """Opens a game for each player; some cannot be closed."""

    def __init__(self, name: str, log: list[str], fails: bool = False) -> None:
        super().__init__(dataset=[{"question": "?"}], max_turns=1)
        self.name, self.log, self.fails = name, log, fails

    def setup_state(self, state: State) -> Any:
        if state.session is None:
            self.log.append(f"{self.name} opened")
            state.session = self.name
        return super().setup_state(state)

    def env_response(self, messages: list[Message], state: State) -> Any:
        return "on"

    async def close_session(self, session: Any) -> None:
        self.log.append(f"{session} closed")
        if self.fails:
            raise OSError("stuck")


async def test_a_player_keeps_its_games_and_closes_all_of_them_newest_first() -> None:
    log: list[str] = []
    player = Rollouts()
    envs = [Arcade("a", log), Arcade("b", log, fails=True), Arcade("c", log)]
    for env in (*envs, *envs):
        await player.play(env, env.tasks.input(0), ScriptedClient(["x"]), "m", None)
    assert log == ["a opened", "b opened", "c opened"]
    with pytest.raises(OSError, match="stuck"):
        await player.close()
    assert log[3:] == ["c closed", "b closed", "a closed"]
    await player.close()
    assert len(log) == 6


class Own(ChatEnv):
    """Returns, or raises, what it is told to."""

    def __init__(self, result: Any) -> None:
        super().__init__(dataset=[{"question": "?"}])
        self.result = result
        self.cleaned: list[Any] = []

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> Any:
        state = await self.init_state(input, client, model, sampling_args)
        if isinstance(self.result, Exception):
            raise self.result
        return state if self.result == "state" else self.result

    @cleanup
    def leave(self, state: State) -> None:
        self.cleaned.append(state["stop_condition"])


@pytest.mark.parametrize("result", [None, {"reward": 1.0}, ZeroDivisionError("a bug")])
async def test_a_rollout_that_breaks_off_is_cleaned_up_and_its_cause_is_kept(result: Any) -> None:
    env = Own(result)
    with pytest.raises(RolloutFailed) as caught:
        await Rollouts().play(env, env.tasks.input(0), ScriptedClient([]), "m", None)
    cause = caught.value.__cause__
    if isinstance(result, Exception):
        assert cause is result
    else:
        assert isinstance(cause, TypeError)
        assert f"must return a State, got {type(result).__name__}" in str(cause)
    assert len(env.cleaned) == 1
    assert caught.value.state["prompt"][0].content == "?"


async def test_an_error_of_the_library_is_in_the_state_and_names_the_end() -> None:
    env = Own(InfraError("down"))
    state = await Rollouts().play(env, env.tasks.input(0), ScriptedClient([]), "m", None)
    assert (state["stop_condition"], state["error"], env.cleaned) == ("has_error", env.result, ["has_error"])
    assert (await Rollouts().play(Own("state"), env.tasks.input(0), ScriptedClient([]), "m", None))["stop_condition"] == "rollout_completed"
