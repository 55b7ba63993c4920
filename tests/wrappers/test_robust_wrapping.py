"""Games as people write them: `to_chat` plays what other libraries, older interfaces and careless authors make, or says what to do."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import vfgym
from tests.programs import run_python
from verifiers_compat.envs.experimental.gym_env import GymEnv
from vfgym.errors import ConfigurationError


class Counter(gym.Env[Any, Any]):
    """Count up to three."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}
    action_space: Any = spaces.Discrete(2)
    observation_space: Any = spaces.Discrete(4)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.count = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        self.count += int(action)
        return self.count, float(action), self.count == 3, False, {}

    def render(self) -> Any:
        return f"count {self.count}"


def shown(env: Any) -> str:
    """Return the text of the first observation."""
    return str(env.reset(seed=0)[0][-1].content)


# A game whose `unwrapped` is not an environment


class Planets:
    """What another library calls an environment."""


class OfAnotherLibrary(Counter):
    """Count the planets."""

    @property
    def unwrapped(self) -> Any:  # as that of jumanji.wrappers.JumanjiToGymWrapper
        return Planets()


@pytest.mark.parametrize("wrap", [lambda game: game, lambda game: gym.wrappers.TimeLimit(game, 9)], ids=["bare", "wrapped"])
@pytest.mark.parametrize("options", [{}, {"render_mode": "rgb_array"}, {"on_invalid": "random"}], ids=str)
def test_a_game_may_call_anything_unwrapped(wrap: Any, options: dict[str, Any]) -> None:
    env = vfgym.to_chat(lambda: wrap(OfAnotherLibrary()), **options)
    assert shown(env).startswith("You are playing OfAnotherLibrary.\n\nCount the planets.")
    assert [env.step("1").reward for _ in range(3)] == [1.0, 1.0, 1.0]
    copied = copy.deepcopy(env)
    assert shown(copied) == shown(env)


class Moons:
    """Count the moons."""

    def step(self, action: Any) -> Any:
        raise AssertionError("the adapter is played")


class Adapter(OfAnotherLibrary):
    """Gives another library's environments the interface of Gymnasium."""

    @property
    def unwrapped(self) -> Any:
        return Moons()


def test_an_adapter_is_described_as_what_it_adapts() -> None:
    assert shown(vfgym.to_chat(Adapter)).startswith("You are playing Moons.\n\nCount the moons.")


# A drawing that is printed


class Printing(Counter):
    """Prints its drawing."""

    def render(self) -> Any:
        print(f"count {self.count}")


def test_a_game_that_prints_its_drawing_is_shown_by_its_observations(capsys: pytest.CaptureFixture[str]) -> None:
    env = vfgym.to_chat(lambda: Printing("ansi"))
    assert shown(env).endswith("\n\n0")
    assert env.step("1").observation[-1].content == "1"
    assert capsys.readouterr().out == ""
    assert shown(vfgym.to_chat(lambda: Counter("ansi"))).endswith("\n\ncount 0")


def test_what_cannot_be_read_is_refused_though_it_could_be_printed() -> None:
    class Large(Printing):
        observation_space = spaces.Box(0, 1, (1000,))

    with pytest.raises(ConfigurationError, match="1000 numbers, which no model can read"):
        vfgym.to_chat(lambda: Large("ansi"))


class NeedsALevel(Counter):
    """Begins only with an option."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed, options={"level": (options or {})["level"]})


def test_a_game_that_begins_only_with_options_is_drawn() -> None:
    env = vfgym.to_chat(lambda: NeedsALevel("ansi"))
    conversation, _ = env.reset(options={"game_options": {"level": 1}})
    assert conversation[-1].content.endswith("\n\ncount 0")


# A game that cannot be closed


class Unclosable(Counter):
    """Raises when it is closed."""

    def close(self) -> None:
        raise RuntimeError("already closed")


@pytest.mark.parametrize("blocking", [False, True])
def test_what_close_raises_is_logged_and_costs_no_result(blocking: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        env = vfgym.to_chat(Unclosable, blocking=blocking)
        results = vfgym.evaluate(env, agent=lambda observation, info: "1", num_examples=2)
        assert [row["reward"] for row in results["outputs"]] == [3.0, 3.0]
        assert not any(row["error"] for row in results["outputs"])
        env.reset()
        env.close()
    said = {record.message for record in caplog.records}
    assert said == {"a game of Unclosable could not be closed: RuntimeError('already closed')"}


def test_a_registered_game_may_fail_to_close_too(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    gym.register("Unclosable-v0", lambda **options: Unclosable(**options))
    try:
        env = vfgym.to_chat("Unclosable-v0")
        assert shown(env).endswith("\n\ncount 0")
        env.close()
    finally:
        del gym.registry["Unclosable-v0"]
    assert len(caplog.records) >= 2


# A factory that imports PettingZoo itself


def test_a_factory_that_imports_pettingzoo_is_taken_the_first_time() -> None:
    pytest.importorskip("pettingzoo")
    program = """
import sys
import vfgym

def make():
    from pettingzoo.classic import tictactoe_v3
    return tictactoe_v3.env()

assert "pettingzoo" not in sys.modules
env = vfgym.to_chat(make, opponents="random")
assert type(env).__name__ == "PettingZooEnv", env
env.reset(seed=0)
print(env.step("4").reward)
"""
    assert run_python(program, check=True).stdout.split() == ["0.0"]


def test_a_factory_makes_one_game_to_look_at() -> None:
    made = []

    def make() -> Any:
        made.append(Counter())
        return made[-1]

    vfgym.to_chat(make)
    assert len(made) == 1


# Vector rewards


class TwoGoals(Counter):
    """Rewards with a vector."""

    reward_space = spaces.Box(-1.0, 1.0, (2,))

    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        return (observation, np.array([reward, -0.5]), *rest)


@pytest.mark.parametrize("wrap", [lambda game: game, lambda game: gym.wrappers.TimeLimit(game, 9)], ids=["bare", "wrapped"])
def test_vector_rewards_are_refused_with_the_wrapper_to_use(wrap: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"TwoGoals rewards moves with a vector .*\.TransformReward.*LinearReward"):
        vfgym.to_chat(lambda: wrap(TwoGoals()))


def test_the_wrapper_that_is_named_helps() -> None:
    env = vfgym.to_chat(lambda: gym.wrappers.TransformReward(TwoGoals(), lambda reward: float(np.dot(reward, [1, 2]))))
    env.reset(seed=0)
    assert env.step("1").reward == 0.0
    assert env.step("0").reward == -1.0


def test_a_vector_that_nobody_announced_is_named_when_it_comes() -> None:
    class Unannounced(TwoGoals):
        reward_space = None  # type: ignore[assignment]

    env = vfgym.to_chat(Unannounced)
    env.reset(seed=0)
    with pytest.raises(TypeError, match="If the reward is a vector, make it one number with a wrapper"):
        env.step("1")


# The interface of the older Gym


class OldCounter:
    """Count up from a number that the seed gives."""

    action_space: Any = spaces.Discrete(2)
    observation_space: Any = spaces.Discrete(20)

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.closed = 0

    def seed(self, seed: int | None = None) -> list[int | None]:
        self.rng = np.random.default_rng(seed)
        return [seed]

    def reset(self) -> Any:
        self.count = int(self.rng.integers(10))
        self.most = self.count + 2
        return self.count

    def step(self, action: Any) -> Any:
        self.count += int(action)
        return self.count, int(action), self.count == self.most, {"count": self.count}

    def close(self) -> None:
        self.closed += 1


class OldEnv(OldCounter, gym.Env[Any, Any]):  # type: ignore[misc]
    """Count up from a number that the seed gives."""


class OldWithReturnInfo(OldEnv):
    """Count up from a number that the seed gives."""

    def reset(self, *, seed: int | None = None, return_info: bool = False, options: Any = None) -> Any:
        if seed is not None:
            self.seed(seed)
        return (super().reset(), {}) if return_info else super().reset()


OLD = pytest.mark.parametrize("make", [OldCounter, OldEnv, OldWithReturnInfo])


@OLD
def test_games_of_the_older_gym_are_played(make: Callable[[], Any]) -> None:
    env = vfgym.to_chat(make)
    first = int(np.random.default_rng(5).integers(10))
    content = str(env.reset(seed=5)[0][-1].content)
    assert content.startswith(f"You are playing {make.__name__}.\n\nCount up from a number that the seed gives.")
    assert content.endswith(f"\n\n{first}")
    outcome = env.step("1")
    assert (outcome.reward, outcome.terminated, outcome.info["game_info"]) == (1.0, False, {"count": first + 1})
    assert env.step("1").terminated
    again = str(env.reset(seed=5)[0][-1].content)
    assert again == content
    following = [str(env.reset()[0][-1].content).rpartition("\n\n")[2] for _ in range(8)]
    assert len(set(following)) > 1, "an unseeded reset continues the game's random numbers"
    env.close()


@OLD
def test_both_ways_to_play_an_old_game_reward_alike(make: Callable[[], Any]) -> None:
    chat, rollouts = vfgym.to_chat(make), GymEnv(make, action_parser=int)
    for seed in range(3):
        chat.reset(seed=seed)
        rollouts.reset(seed=seed)
        for action in "011":
            one, other = chat.step(action), rollouts.step(action)
            assert tuple(one)[1:4] == tuple(other)[1:4]
            assert one.observation[-1].content.split()[0] == other.observation[-1].content


def test_an_old_game_is_copied_in_the_middle_and_closed() -> None:
    env = vfgym.to_chat(OldCounter)
    env.reset(seed=1)
    env.step("1")
    for copied in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert copied.step("1").observation[-1].content == f"{int(np.random.default_rng(1).integers(10)) + 2}\n\nThe game is over."
    game = env.state.session.game.game  # type: ignore[union-attr]
    env.close()
    assert game.closed == 1


def test_what_is_not_a_game_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="made a list, which is not"):
        vfgym.to_chat(lambda: [])
