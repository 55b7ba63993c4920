"""What Gymnasium asks of a vector besides episodes: spaces and attributes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from tests.environments import RandomTalk
from vfgym.errors import ConfigurationError
from vfgym.vector import ChatVectorEnv


def test_attributes_of_the_environments_can_be_read_set_and_called() -> None:
    envs = ChatVectorEnv(RandomTalk(render_mode="ansi"), 2)
    envs.reset(seed=0)
    assert envs.render() == ("[user] ?", "[user] ?")
    assert [state["example_id"] for state in envs.get_attr("state")] == [0, 0]
    envs.set_attr("label", ["a", "b"])
    assert envs.get_attr("label") == ("a", "b")
    assert len(envs.call("fork")) == 2
    assert repr(envs) == "ChatVectorEnv(num_envs=2)"
    envs.close()
    envs.close()


class Called(gym.Env[Any, Any]):
    """A game that calls a function at each of its steps, with its action: 0, or 1 where something is to happen."""

    def __init__(self, call: Callable[[int], object]) -> None:
        self.observation_space = gym.spaces.Discrete(100)
        self.action_space = gym.spaces.Discrete(2)
        self.call = call
        self.moves = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.moves = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.call(action)
        self.moves += 1
        return self.moves, 1.0, False, False, {}


def vector_of(call: Callable[[int], object], num_envs: int, *, here: bool = True, **kwargs: Any) -> ChatVectorEnv:
    """Return a vector of such games, played in the calling thread or on the loop."""
    envs = ChatVectorEnv(vfgym.to_chat(lambda: Called(call), blocking=False), num_envs, **kwargs)
    assert envs._plays_here
    envs._plays_here = here
    return envs


@pytest.mark.parametrize("is_enabled", [True, False])
def test_collections_of_garbage_are_put_off_for_large_vectors_only_and_then_as_before(is_enabled: bool) -> None:
    seen: list[bool] = []

    def look(action: int) -> None:
        seen.append(gc.isenabled())
        if action:
            raise OSError("in the middle")

    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        for count in (2, 1100):
            envs = vector_of(look, count)
            envs.reset(seed=0)
            with pytest.raises(OSError, match="in the middle"):
                envs.step(["1"] + ["0"] * (count - 1))
            assert gc.isenabled() is is_enabled
            envs.close()
        assert set(seen[:2]) == {is_enabled}
        assert set(seen[2:]) == {False}
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_attributes_are_set_to_one_value_or_to_one_for_each() -> None:
    envs = ChatVectorEnv(RandomTalk(), 2)
    envs.set_attr("label", "all")
    assert envs.get_attr("label") == ("all", "all")
    envs.set_attr("label", (0, None))
    assert envs.get_attr("label") == (0, None)
    with pytest.raises(ConfigurationError, match="expected 2, got 3"):
        envs.set_attr("label", [1, 2, 3])
    envs.reset(seed=[4, 0])
    assert envs.np_random_seed == (4, 0)
    assert [generator.random() for generator in envs.np_random] == [np.random.default_rng(seed).random() for seed in (4, 0)]
    assert (envs.single_observation_space, envs.single_action_space) == (envs.envs[0].observation_space, envs.envs[0].action_space)
    envs.close()
