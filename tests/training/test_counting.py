"""What a rollout counts with for trainers that see one at a time: by its ending, for each adapter whose trainer can be stood in for."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import vfgym
from tests.environments import Talk
from tests.training.trainers import environments
from vfgym.endings import Ending
from vfgym.errors import ResetNeeded, SandboxError
from vfgym.training.counting import CountedRewards, RolloutMissing, count_reward

MISSING = {Ending.ENVIRONMENT_FAILED, Ending.INFRASTRUCTURE_FAILED}
LOWERED = {Ending.CUT, Ending.POLICY_FAILED}


@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize(
    ("earned", "declared", "lowered"),
    [(1.0, -1.0, -1.0), (-3.0, -1.0, -3.0), (1.0, None, 0.0), (-3.0, None, -3.0), (1.0, 0.5, 0.5), (1.0, 2.0, 1.0)],
)
def test_every_ending_counts_by_one_rule(ending: Ending, earned: float, declared: float | None, lowered: float) -> None:
    if ending in MISSING:
        with pytest.raises(RolloutMissing, match=f"it ended as {ending}: SandboxError: gone") as raised:
            count_reward(ending, earned, declared, SandboxError("gone"))
        assert raised.value.failure_cause == ending.cause
    else:
        assert count_reward(ending, earned, declared) == (lowered if ending in LOWERED else earned)


# Environments, one for each ending


def broken_reward() -> float:
    raise ValueError("the reward is broken")


def play(env: gym.Env[Any, Any], answers: list[str]) -> list[float]:
    """Return the rewards of the steps of an episode."""
    env.reset(seed=0)
    rewards = []
    for answer in answers:
        _, reward, terminated, truncated, _ = env.step(answer)
        rewards.append(float(reward))
        if terminated or truncated:
            break
    return rewards


def make_chatter(**arguments: Any) -> Talk:
    """Earns 1 each turn, and may be cut by tokens."""
    env = Talk(rubric=vfgym.Rubric(lambda: 5.0), max_turns=3, **arguments)
    env.set_max_total_completion_tokens(1)
    return env


def say(text: str) -> vfgym.Response:
    return vfgym.Response("", 0, "m", vfgym.messages.Usage(1, 0, 10, 11), text)


def test_a_task_that_ends_counts_with_its_return() -> None:
    across = [f"<action>{move}</action>" for move in environments.ACROSS]
    assert sum(play(CountedRewards(environments.make_lake(failure_reward=-1.0)), across)) == 1.0
    assert play(CountedRewards(Talk(rubric=vfgym.Rubric(lambda: 5.0), max_turns=2, failure_reward=-1.0)), ["a", "b", "c"]) == [0.0, 5.0]


def test_answers_that_cannot_be_read_lower_what_was_earned() -> None:
    cart = vfgym.to_chat("CartPole-v1", max_invalid_moves=2, failure_reward=-1.0)
    rewards = play(CountedRewards(cart), ["<action>left</action>", "nothing", "nothing"])
    assert (rewards[0], sum(rewards)) == (1.0, -1.0)


@pytest.mark.parametrize("make", [environments.make_unreachable, environments.make_broken])
def test_what_says_nothing_of_the_policy_is_raised(make: Any) -> None:
    env = CountedRewards(make(failure_reward=-1.0))
    env.reset(seed=0)
    with pytest.raises((RolloutMissing, KeyError), match=r"infrastructure_failed: SandboxError|the task is broken"):
        env.step("hello")


def test_a_reward_function_that_fails_is_the_environments_doing() -> None:
    env = CountedRewards(environments.make_guess(failure_reward=-1.0))
    env.unwrapped.rubric.add_reward_func(broken_reward)  # type: ignore[attr-defined]
    env.reset(seed=0)
    with pytest.raises(RolloutMissing, match="environment_failed: a reward function failed"):
        env.step("2")


def test_a_second_episode_begins_with_nothing_earned() -> None:
    cart = CountedRewards(vfgym.to_chat("CartPole-v1", max_invalid_moves=1, failure_reward=-1.0))
    assert [play(cart, ["<action>left</action>", "nothing"]) for _ in range(2)] == [[1.0, -2.0]] * 2


def test_an_episode_that_somebody_truncates_counts_with_its_return() -> None:
    env = CountedRewards(environments.make_lake(failure_reward=-1.0))
    with pytest.raises(ResetNeeded):
        env.truncate()
    env.reset(seed=0)
    assert env.truncate()[1:4] == (0.0, False, True)


def test_the_environment_of_a_group_declares() -> None:
    """And the group itself, where that is silent."""
    members = [make_chatter(failure_reward=-2.0), make_chatter(), make_chatter(failure_reward=0.0)]
    group = vfgym.EnvGroup(members, env_names=["declared", "silent", "zero"], failure_reward=-7.0)
    counted = []
    for example_id in (0, 1, 2):
        env = CountedRewards(group)
        env.reset(seed=0, options={"example_id": example_id})
        counted.append(env.step(say("hello"))[1])
    assert counted == [-2.0, -7.0, 0.0]
