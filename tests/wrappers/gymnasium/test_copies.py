"""`find_copied_as_new`: which games of Gymnasium can be copied in the middle, and what copies share."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import vfgym
from tests.wrappers.gymnasium.toys import Toy
from vfgym.errors import EpisodeNotPicklable
from vfgym.wrappers.gymnasium.copies import find_copied_as_new, transitions_of
from vfgym.wrappers.gymnasium.old_gym import OldGymGame

DUPLICATES = pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"])


class Steps(Toy, gym.utils.EzPickle):
    """A game that is copied by its constructor's arguments."""

    def __init__(self) -> None:
        gym.utils.EzPickle.__init__(self)
        super().__init__(length=8)


class CopiedSteps(Steps):
    """A game that says itself how it is copied, which it then knows best."""

    def __deepcopy__(self, memo: Any) -> CopiedSteps:
        made = CopiedSteps()
        made.count = self.count
        return made


class SavedSteps(Steps):
    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "count": self.count}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.count = state["count"]


class Wrapped(gym.Wrapper[Any, Any, Any, Any], gym.utils.EzPickle):
    """Keeps something that its copy does not get."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.EzPickle.__init__(self, env)
        super().__init__(env)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: gym.make("CartPole-v1"), None),
        (Steps, Steps),
        (CopiedSteps, None),
        (SavedSteps, None),
        (lambda: gym.Wrapper(gym.Wrapper(Steps())), Steps),
        (lambda: Wrapped(gym.make("CartPole-v1").unwrapped), Wrapped),
        (lambda: Wrapped(SavedSteps()), Wrapped),
        (lambda: OldGymGame(Steps()), Steps),
        (lambda: gym.Wrapper(OldGymGame(CopiedSteps())), None),
    ],
)
def test_the_class_is_found_whose_copy_is_a_new_game(make: Any, found: type | None) -> None:
    assert find_copied_as_new(make()) is found


@pytest.mark.parametrize(
    "game", ["HalfCheetah-v5", Steps, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("LunarLander-v3", "ALE/Pong-v5"))]
)
@DUPLICATES
def test_a_game_that_is_copied_as_a_new_one_is_not_copied_in_the_middle(game: Any, duplicate: Any) -> None:
    """Before and after an episode a copy plays as the original does; in the middle it would have lost the game."""
    needs = {"LunarLander-v3": "Box2D", "HalfCheetah-v5": "mujoco", "ALE/Pong-v5": "ale_py"}
    pytest.importorskip(needs.get(game, "gymnasium"))
    env = vfgym.to_chat(game, max_turns=2)
    assert not env.can_go_back
    assert duplicate(env).reset(seed=3)[0] == env.reset(seed=3)[0]
    action = env.codec.example()
    for seat in (env, vfgym.to_gym(env), env.fork()):
        seat.reset(seed=3)
        with pytest.raises(EpisodeNotPicklable, match=r"arguments of its constructor only .* before its first reset"):
            duplicate(seat)
    for call in (env.snapshot, env.branch):
        with pytest.raises(EpisodeNotPicklable, match="the arguments of its constructor only"):
            call()
    env.step(action)
    assert env.step(action).truncated
    twin = duplicate(env)
    assert twin.reset(seed=4)[0] == env.reset(seed=4)[0]
    assert twin.step(action).observation == env.step(action).observation
    for each in (env, twin):
        each.close()


@pytest.mark.parametrize("options", [{"as_tool": True}, {"history": 1}, {"on_invalid": "random"}, {"show": ("reward", "legal", "step")}])
@pytest.mark.parametrize("game", ["CartPole-v1", "Blackjack-v1", SavedSteps])
@DUPLICATES
def test_a_copy_in_the_middle_goes_on_alone(game: Any, options: dict[str, Any], duplicate: Any) -> None:
    env = vfgym.to_chat(game, **options)
    env.reset(seed=3)
    if game is SavedSteps:
        env.step("1")
    env.action_space.seed(0)
    action = env.action_space.sample()
    other = duplicate(env)
    expected = duplicate(env).step(action)
    assert data_equivalence(other.step(action), expected)
    assert data_equivalence(env.step(action), expected)


def test_a_game_that_cannot_be_copied_is_named() -> None:
    env = vfgym.to_chat(lambda: Toy(dealt=(card for card in range(9))))
    env.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match=r"its game is a Toy, which cannot be \(cannot pickle 'generator'"):
        env.branch()


def test_games_that_cannot_be_copied_are_played_side_by_side() -> None:
    """Forks, runs and vector environments copy none."""
    env = vfgym.to_chat(Steps, max_turns=3)
    other = env.fork()
    for seat in (env, other):
        seat.reset(seed=0)
    assert [seat.step("1").observation[-1].content for seat in (env, other, env)] == ["1", "1", "2"]
    assert [row["error"] for row in vfgym.evaluate(env, "random", num_examples=3, max_concurrent=2)["outputs"]] == [None] * 3
    seats = gym.vector.SyncVectorEnv([env.fork, env.fork])
    seats.reset(seed=[1, 2])
    assert [message[-1].content for message in seats.step(("1", "0"))[0]] == ["1", "1"]
    seats.close()


def test_a_game_that_has_drawn_itself_goes_back() -> None:
    env: Any = vfgym.to_chat("CartPole-v1", render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    branch: Any = env.branch()
    assert np.array_equal(branch.render(), before)
    for _ in range(5):
        branch.step("0")
    assert not np.array_equal(branch.render(), before)
    assert np.array_equal(env.render(), before)


async def test_a_game_on_a_thread_of_its_own_goes_back() -> None:
    env = vfgym.to_chat("FrozenLake-v1", blocking=True)
    await env.areset(seed=0)
    await env.astep("right")
    branches = [env.branch(), env.branch()]
    first, second = [await branch.astep("down") for branch in branches]
    assert first == second == await env.astep("down")
    for seat in (*branches, env):
        await seat.aclose()


def test_transitions_are_shared_where_nothing_may_change_them() -> None:
    lake: Any = gym.make("FrozenLake-v1")
    assert transitions_of(lake) is lake.unwrapped.P

    class Lake(type(lake.unwrapped)):  # type: ignore[misc]
        """Somebody's own, who may write to the table."""

    for game in (gym.make("Blackjack-v1"), gym.make("CartPole-v1"), gym.wrappers.ClipReward(lake, 0, 1), Lake()):
        assert transitions_of(game) is None
    env = vfgym.to_chat("FrozenLake-v1")
    games = []
    for seat in (env, env.fork(), env.fork()):
        seat.reset(seed=0)
        games.append(seat.state.session.game.unwrapped)
    assert len({id(game.P) for game in games}) == 1
    assert len({*map(id, games)}) == 3
