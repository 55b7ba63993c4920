"""`find_copied_as_new`: which games of Gymnasium can be copied in the middle, and what copies share."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from vfgym.agents.base import seat_of
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import EpisodeNotPicklable
from vfgym.runs.replicas import make_env
from vfgym.wrappers.gymnasium.copies import find_copied_as_new, transitions_of
from vfgym.wrappers.gymnasium.old_gym import OldGymGame


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


class Wrapped(gym.Wrapper[Any, Any, Any, Any], gym.utils.EzPickle):
    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.EzPickle.__init__(self, env)
        super().__init__(env)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: gym.make("CartPole-v1"), None),
        (Steps, Steps),
        (CopiedSteps, None),
        (lambda: gym.Wrapper(gym.Wrapper(Steps())), Steps),
        (lambda: Wrapped(gym.make("CartPole-v1").unwrapped), Wrapped),
        (lambda: OldGymGame(Steps()), Steps),
        (lambda: gym.Wrapper(OldGymGame(CopiedSteps())), None),
    ],
)
def test_the_class_is_found_whose_copy_is_a_new_game(make: Any, found: type | None) -> None:
    assert find_copied_as_new(make()) is found


def test_an_environment_is_copied_before_its_first_reset_and_after_the_end() -> None:
    env = vfgym.to_chat(Steps, rules="Go on.")
    assert pickle.loads(pickle.dumps(env)).reset(seed=0)
    env.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match="Steps is pickled and copied by the arguments of its constructor only"):
        copy.deepcopy(env)
    for _ in range(8):
        env.step("1")
    assert copy.deepcopy(env).state["num_moves"] == 8


def test_transitions_are_shared_where_nothing_may_change_them() -> None:
    lake = gym.make("FrozenLake-v1")
    assert transitions_of(lake) is lake.unwrapped.P  # type: ignore[attr-defined]
    assert transitions_of(gym.make("Blackjack-v1")) is None
    assert transitions_of(gym.make("CartPole-v1")) is None
    assert transitions_of(gym.wrappers.ClipReward(lake, 0, 1)) is None

    class Lake(type(lake.unwrapped)):  # type: ignore[misc]
        """Somebody's own, who may write to the table."""

    assert transitions_of(Lake()) is None


def test_games_of_one_environment_share_their_table_of_moves() -> None:
    env = vfgym.to_chat("FrozenLake-v1")
    forks = [env.fork() for _ in range(2)]
    tables = []
    for fork in (env, *forks):
        fork.reset(seed=0)
        tables.append(fork.state.session.game.unwrapped.P)
    assert tables[0] is tables[1] is tables[2]
    assert len({id(fork.state.session.game.unwrapped) for fork in (env, *forks)}) == 3
