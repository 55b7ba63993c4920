"""`find_copied_as_new`: which games of Gymnasium can be copied in the middle, and what copies share."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from vfgym.agents.base import seat_of
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import EpisodeNotPicklable
from vfgym.runs.replicas import make_env


def begun(env_id: str) -> EpisodeSeat:
    seat = seat_of(make_env(env_id, {}))
    seat.reset(seed=1)
    return seat


@pytest.mark.parametrize("env_id", ["gymnasium/LunarLander-v3", "gymnasium/InvertedPendulum-v5"])
def test_a_game_whose_copy_is_a_new_one_says_so(env_id: str) -> None:
    env = begun(env_id)
    assert not env.definition.can_go_back
    for call in (env.snapshot, env.branch):
        with pytest.raises(EpisodeNotPicklable, match="the arguments of its constructor only"):
            call()
    env.close()


class Steps(gym.Env[int, int], gym.utils.EzPickle):
    """A game that says itself how it is copied, which it then knows best."""

    action_space = observation_space = gym.spaces.Discrete(9)

    def __init__(self) -> None:
        gym.utils.EzPickle.__init__(self)
        self.steps = 0

    def reset(self, **kwargs: Any) -> Any:
        self.steps = 0
        return 0, {}

    def step(self, action: int) -> Any:
        self.steps += 1
        return self.steps, 0.0, self.steps == 8, False, {}


class CopiedSteps(Steps):
    def __deepcopy__(self, memo: Any) -> CopiedSteps:
        made = CopiedSteps()
        made.steps = self.steps
        return made


def test_a_games_own_declaration_counts() -> None:
    assert not vfgym.to_chat(Steps, rules="Go on.").can_go_back
    env = vfgym.to_chat(CopiedSteps, rules="Go on.")
    assert env.can_go_back
    env.reset(seed=0)
    env.step("1")
    branch = env.branch(seed=1)
    branch.step("1")
    assert (env.state["observation"], branch.state["observation"]) == (1, 2)


def test_a_game_that_cannot_be_copied_is_named() -> None:
    class Generating(Steps):
        def __getstate__(self) -> Any:
            return vars(self)

        def __setstate__(self, state: Any) -> None:
            vars(self).update(state)

        def reset(self, **kwargs: Any) -> Any:
            self.dealt = (card for card in range(9))
            return super().reset(**kwargs)

    env = vfgym.to_chat(Generating, rules="Go on.")
    env.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match=r"its game is a Generating, which cannot be \(cannot pickle 'generator'"):
        env.branch()


def test_a_game_that_has_drawn_itself_goes_back() -> None:
    env = vfgym.to_chat("CartPole-v1", render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    branch = env.branch()
    assert np.array_equal(branch.render(), before)  # type: ignore[arg-type]
    for _ in range(5):
        branch.step("0")
    assert not np.array_equal(branch.render(), before)  # type: ignore[arg-type]
    assert np.array_equal(env.render(), before)  # type: ignore[arg-type]


async def test_a_game_on_a_thread_of_its_own_goes_back() -> None:
    env = vfgym.to_chat("FrozenLake-v1", blocking=True)
    await env.areset(seed=0)
    await env.astep("right")
    branches = [env.branch(), env.branch()]
    first, second = [await branch.astep("down") for branch in branches]
    assert first == second == await env.astep("down")
    for seat in (*branches, env):
        await seat.aclose()
