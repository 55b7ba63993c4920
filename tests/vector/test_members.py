"""One environment of a vector: its steps and resets, and what it returned last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from tests.environments import Echo
from vfgym.aio.steps import Steps, run_sync
from vfgym.runs.replicas import Replicas
from vfgym.vector.members import VectorMember


@pytest.fixture
def replicas() -> Iterator[Replicas]:
    made = Replicas()
    yield made
    made.close()


def member_of(replicas: Replicas, env: Any, mode: AutoresetMode) -> VectorMember:
    replicas.open(env, {})
    return VectorMember(replicas.take(defers_scoring=False), mode)


def run(steps: Steps[None]) -> None:
    run_sync(steps)


def lengths(member: VectorMember) -> tuple[int, bool, bool]:
    return len(member.last.observation), member.last.truncated, member.is_over


WRAPPED = pytest.mark.parametrize("wrap", [lambda env: env, lambda env: gym.wrappers.TransformReward(env, lambda reward: 2 + reward)])


@WRAPPED
def test_at_the_end_it_waits_for_a_reset(replicas: Replicas, wrap: Any) -> None:
    member = member_of(replicas, wrap(Echo(max_turns=2)), AutoresetMode.DISABLED)
    run(member.reset(3))
    assert (lengths(member), member.last.reward, "example_id" in member.last.info) == ((1, False, False), 0.0, True)
    for _ in range(2):
        run(member.step("a"))
    assert lengths(member) == (4, True, True)
    run(member.reset())
    assert lengths(member) == (1, False, False)


@WRAPPED
def test_it_begins_anew_in_the_same_step(replicas: Replicas, wrap: Any) -> None:
    member = member_of(replicas, wrap(Echo(max_turns=1)), AutoresetMode.SAME_STEP)
    run(member.reset(3))
    run(member.step("a"))
    assert lengths(member) == (1, True, False)
    info = member.last.info
    assert (len(info["final_obs"]), info["final_info"]["stop_condition"], info["stop_condition"]) == (2, "max_turns_reached", None)


@WRAPPED
def test_it_begins_anew_in_the_next_step(replicas: Replicas, wrap: Any) -> None:
    member = member_of(replicas, wrap(Echo(max_turns=1)), AutoresetMode.NEXT_STEP)
    run(member.reset(3))
    run(member.step("a"))
    assert lengths(member) == (2, True, True)
    run(member.step("ignored"))
    assert (lengths(member), member.last.reward) == ((1, False, False), 0.0)


def test_wrappers_that_check_the_user_only_are_left_out(replicas: Replicas) -> None:
    checked = gym.wrappers.OrderEnforcing(gym.wrappers.PassiveEnvChecker(Echo()))
    assert member_of(replicas, checked, AutoresetMode.DISABLED).is_bare
    other = Replicas()
    assert not member_of(other, gym.wrappers.TimeLimit(Echo(), 3), AutoresetMode.DISABLED).is_bare
    other.close()


@WRAPPED
def test_options_are_passed_on_and_stay_the_callers(replicas: Replicas, wrap: Any) -> None:
    env = wrap(Echo(dataset=[{"question": f"{number}?"} for number in range(9)]))
    member = member_of(replicas, env, AutoresetMode.DISABLED)
    for example_id in (8, 0):
        options = {"example_id": example_id}
        run(member.reset(0, options))
        assert (member.last.info["example_id"], options) == (example_id, {"example_id": example_id})


def test_a_reward_of_a_wrapper_is_a_number_of_python(replicas: Replicas) -> None:
    env = gym.wrappers.TransformReward(Echo(), lambda reward: np.float32(0.5))
    member = member_of(replicas, env, AutoresetMode.DISABLED)
    run(member.reset(0))
    run(member.step("a"))
    assert (member.last.reward, type(member.last.reward)) == (0.5, float)


def test_what_a_caller_wrote_into_an_observation_is_not_in_the_next_one(replicas: Replicas) -> None:
    member = member_of(replicas, Echo(), AutoresetMode.DISABLED)
    run(member.reset(3))
    member.last.observation.append("written")
    assert len(member.observe_again()) == 1
