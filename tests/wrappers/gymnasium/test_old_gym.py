"""Games of the older Gym, or with nothing but `reset` and `step`, have the interface of Gymnasium."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import vfgym
from verifiers_compat.envs.experimental.gym_env import GymEnv
from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium.old_gym import OldGymGame, convert_space, has_old_interface, normalize_reset, normalize_step, reset_game


class Old:
    """A game of the older Gym."""

    action_space = observation_space = spaces.Discrete(3)

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def seed(self, seed: int) -> None:
        self.calls.append(("seed", seed))

    def reset(self) -> int:
        self.calls.append("reset")
        return 0

    def step(self, action: int) -> Any:
        return action, 1, True, {"TimeLimit.truncated": action == 2}

    def close(self) -> None:
        self.calls.append("close")


class Seeded(Old):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.calls.append((seed, options))
        return 0, {"level": 1}


class HandsOn(Old):
    """A wrapper of the older Gym, which hands on whatever it is given."""

    def __init__(self, game: Old) -> None:
        self.unwrapped = game

    def reset(self, **kwargs: Any) -> Any:
        return self.unwrapped.reset(**kwargs)

    def seed(self, seed: int) -> None:
        self.unwrapped.seed(seed)


def test_what_reset_gives_is_an_observation_and_an_info() -> None:
    for out in (3, (3, 4), (3, {}, {}), [3, {}]):
        assert normalize_reset(out) == (out, {})
    assert normalize_reset((3, {"level": 1})) == (3, {"level": 1})


@pytest.mark.parametrize(
    ("out", "flags"),
    [
        ((0, 1, True, {}), (True, False)),
        ((0, 1, True, {"TimeLimit.truncated": True}), (False, True)),
        ((0, 1, True, {"TimeLimit.truncated": False}), (True, False)),
        ([0, 1, False, {"TimeLimit.truncated": True}], (False, False)),
        ((0, 1, 0, 1, {}), (False, True)),
        ((0, 1, np.bool_(True), False, {}), (True, False)),
    ],
)
def test_what_step_gives_is_five_values(out: Any, flags: tuple[bool, bool]) -> None:
    observation, reward, *ends, info = normalize_step(out)
    assert (observation, reward, tuple(ends), info) == (0, 1.0, flags, out[-1])
    assert [type(value) for value in (reward, *ends)] == [float, bool, bool]


@pytest.mark.parametrize(("out", "came"), [((1, 2, 3), "3 values"), (None, "NoneType"), ("abcd", "str")])
def test_what_is_no_outcome_is_named(out: Any, came: str) -> None:
    with pytest.raises(ConfigurationError, match=f"got {came}"):
        normalize_step(out)


def test_a_seed_goes_to_reset_where_that_takes_it_and_else_to_the_method_seed() -> None:
    old, seeded, unseeded = Old(), Seeded(), Old()
    assert reset_game(old, 0, None) == reset_game(HandsOn(Old()), 0, None) == (0, {})
    assert old.calls == [("seed", 0), "reset"]
    options = {"level": 1}
    assert reset_game(seeded, 0, options) == (0, {"level": 1})
    assert seeded.calls == [(0, options)]
    assert seeded.calls[0][1] is not options
    reset_game(unseeded, None, None)
    assert unseeded.calls == ["reset"]
    wrapped = Seeded()
    reset_game(HandsOn(wrapped), 5, None)
    assert wrapped.calls == [(5, None)]


def test_the_old_interface_is_known_by_its_reset() -> None:
    class Inherits(Old, gym.Env[Any, Any]):  # type: ignore[misc]
        pass

    class ReturnsInfo(gym.Env[Any, Any]):
        def reset(self, *, seed: int | None = None, return_info: bool = False, options: Any = None) -> Any: ...

    assert [has_old_interface(game) for game in (Old(), Inherits(), ReturnsInfo())] == [True] * 3
    modern = gym.make("CartPole-v1")
    no_games = (3, SimpleNamespace(reset=len), SimpleNamespace(step=len), SimpleNamespace(reset=len, step=3))
    assert [has_old_interface(game) for game in (modern, modern.unwrapped, gym.Wrapper(Inherits()), *no_games)] == [False] * 7


def test_a_game_is_played_and_closed() -> None:
    game = OldGymGame(old := Old())
    assert game.reset(seed=3) == (0, {})
    assert game.step(2) == (2, 1.0, False, True, {"TimeLimit.truncated": True})
    game.close()
    assert old.calls == [("seed", 3), "reset", "close"]
    OldGymGame(SimpleNamespace(action_space=spaces.Discrete(2), observation_space=spaces.Discrete(2))).close()


@pytest.mark.parametrize("name", ["action_space", "observation_space"])
def test_a_game_without_a_space_is_refused(name: str) -> None:
    game = Old()
    setattr(game, name, None)
    with pytest.raises(ConfigurationError, match=f"Old has no {name}"):
        OldGymGame(game)


def of_gym(kind: str, **attributes: Any) -> Any:
    return type(kind, (), attributes)()


@pytest.mark.parametrize(
    ("space", "converted"),
    [
        (of_gym("Discrete", n=3), spaces.Discrete(3)),
        (of_gym("Discrete", n=3, start=2), spaces.Discrete(3, start=2)),
        (of_gym("Box", low=np.zeros(2), high=np.ones(2), dtype=np.dtype(np.float64)), spaces.Box(0, 1, (2,), np.float64)),
        (of_gym("MultiBinary", n=(2, 3)), spaces.MultiBinary((2, 3))),
        (of_gym("MultiDiscrete", nvec=[2, 3]), spaces.MultiDiscrete([2, 3])),
        (of_gym("Tuple", spaces=[of_gym("Discrete", n=2)]), spaces.Tuple([spaces.Discrete(2)])),
        (of_gym("Dict", spaces={"b": of_gym("Discrete", n=2)}), spaces.Dict(b=spaces.Discrete(2))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_spaces_have_the_same_elements(space: Any, converted: gym.Space[Any]) -> None:
    assert convert_space(space) == converted
    assert convert_space(converted) is converted


def test_other_spaces_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="Gymnasium's or the older Gym's, got"):
        convert_space(of_gym("Sequence"))


class Counting(Old):
    """Count up from a number that the seed gives."""

    observation_space = spaces.Discrete(20)

    def seed(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self) -> Any:
        self.count = int(self.rng.integers(10))
        return self.count

    def step(self, action: int) -> Any:
        self.count += action
        return self.count, action, self.count > 10, {"count": self.count}


class Handed(Counting, gym.Env[Any, Any]):  # type: ignore[misc]
    """Count up from a number that the seed gives."""

    def reset(self, *, seed: int | None = None, return_info: bool = False, options: Any = None) -> Any:
        if seed is not None:
            self.seed(seed)
        return (super().reset(), {}) if return_info else super().reset()


@pytest.mark.parametrize("make", [Counting, Handed])
def test_both_ways_to_play_an_old_game_are_alike_and_it_is_copied_and_closed(make: Any) -> None:
    chat, rollouts = vfgym.to_chat(make), GymEnv(make, action_parser=int)
    for seed in (5, 6, 7):
        content = chat.reset(seed=seed)[0][-1].content
        rollouts.reset(seed=seed)
        assert content.startswith(f"You are playing {make.__name__}.\n\nCount up from a number that the seed gives.")
        for action in "012":
            copies = (copy.deepcopy(chat), pickle.loads(pickle.dumps(chat)))
            one, other = chat.step(action), rollouts.step(action)
            assert tuple(one)[1:4] == tuple(other)[1:4]
            assert one.observation[-1].content.split()[0] == other.observation[-1].content
            assert [each.step(action).observation for each in copies] == [one.observation] * 2
            if one.terminated:
                break
    first = int(np.random.default_rng(5).integers(10))
    assert chat.reset(seed=5)[0][-1].content.endswith(f"\n\n{first}")
    assert len({chat.reset()[0][-1].content for _ in range(8)}) > 1, "an unseeded reset continues the game's random numbers"
    game = chat.state.session.game.game
    chat.close()
    assert game.calls[-1] == "close"
