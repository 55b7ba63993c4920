"""What Gymnasium asks of a vector besides episodes: spaces and attributes."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from tests.environments import RandomTalk
from tests.vector.called import vector_of
from vfgym.errors import ConfigurationError
from vfgym.vector import ChatVectorEnv


def test_attributes_of_the_environments_can_be_read_set_and_called() -> None:
    envs = ChatVectorEnv(RandomTalk(render_mode="ansi"), 2)
    envs.reset(seed=0)
    assert (envs.render(), [state["example_id"] for state in envs.get_attr("state")]) == (("[user] ?", "[user] ?"), [0, 0])
    envs.set_attr("label", ["a", "b"])
    assert (envs.get_attr("label"), len(envs.call("fork")), repr(envs)) == (("a", "b"), 2, "ChatVectorEnv(num_envs=2)")
    envs.close()
    envs.close()


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
        assert (set(seen[:2]), set(seen[2:])) == ({is_enabled}, {False})
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
