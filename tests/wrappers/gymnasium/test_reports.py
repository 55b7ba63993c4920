"""`show`: what a model is told of a move besides the observation."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import vfgym
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, ToolCall

ALL = ("reward", "legal", "step")


def replies(env: Any, *answers: Any, seed: int = 0) -> list[str]:
    """Return the text of the first observation and of what each answer is replied with."""
    observation, _ = env.reset(seed=seed)
    texts = [observation[-1].content]
    for answer in answers:
        conversation = env.step(answer).observation
        texts.append(conversation[-1].content)
    return texts


class Masked(gym.Env[Any, Any]):
    """Allows one action at a time, the next one at each step; five steps. Its mask is in the info, in the observation, or in neither."""

    def __init__(self, where: str = "info", action_space: gym.Space[Any] | None = None, beside: Any = None) -> None:
        self.where = where
        self.action_space = spaces.Discrete(3) if action_space is None else action_space
        self.observation_space: gym.Space[Any] = spaces.Discrete(10)
        if where == "observation":
            members = {"observation": spaces.Discrete(10), "action_mask": spaces.MultiBinary(3), **(beside or {})}
            self.observation_space = spaces.Dict(members)
        self.beside = {} if beside is None else {key: 1 for key in beside}
        self.count = 0
        self.played: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count, self.played = 0, []
        return self._seen()

    def step(self, action: Any) -> Any:
        self.count += 1
        self.played.append(action)
        observation, info = self._seen()
        return observation, -0.5 * self.count, self.count == 5, False, info

    def mask(self) -> Any:
        mask = np.zeros(3, np.int8)
        mask[self.count % 3] = 1
        return mask

    def _seen(self) -> Any:
        if self.where == "observation":
            return {"observation": self.count, "action_mask": self.mask(), **self.beside}, {}
        return self.count, {"action_mask": self.mask()} if self.where == "info" else {"mood": "good"}


# Rewards


def test_falling_off_the_cliff_says_what_it_costs() -> None:
    first, *told = replies(vfgym.to_chat("CliffWalking-v1"), "right", "up")
    assert "Reward" not in first.rpartition("</action>")[2]
    assert [text.rpartition("\n\n")[2] for text in told] == ["Reward: -100", "Reward: -1"]


def test_a_wrong_drop_off_says_what_it_costs() -> None:
    env = vfgym.to_chat("Taxi-v4")
    assert "\nReward: -10\n" in replies(env, "5")[1]


def test_the_last_move_says_what_it_earned_before_the_game_is_over() -> None:
    env = vfgym.to_chat("FrozenLake-v1", is_slippery=False)
    *_, last = replies(env, *("down", "down", "right", "right", "down", "right"))
    assert last.endswith("SFFF\nFHFH\nFFFH\nHFF[G]\n\nReward: 1\n\nThe game is over.")


@pytest.mark.parametrize(
    ("game_id", "show"), [("Blackjack-v1", ("reward", "legal")), ("FrozenLake8x8-v1", ("reward", "legal")), ("CartPole-v1", ("legal",))]
)
def test_rewards_are_told_by_default_in_toy_texts_alone(game_id: str, show: tuple[str, ...]) -> None:
    for env in (vfgym.to_chat(game_id), vfgym.to_chat(lambda: gym.make(game_id))):
        assert env.show == show
        assert ("Reward: " in replies(env, "0")[1]) == ("reward" in show)


def test_what_an_invalid_answer_costs_is_told_where_it_costs_anything() -> None:
    options: dict[str, Any] = {"is_slippery": False}
    assert replies(vfgym.to_chat("FrozenLake-v1", invalid_reward=-0.25, **options), "jump")[1].endswith("\n\nReward: -0.25")
    assert "Reward" not in replies(vfgym.to_chat("FrozenLake-v1", **options), "jump")[1]
    assert "Reward" not in replies(vfgym.to_chat("FrozenLake-v1", invalid_reward=-0.25, show=(), **options), "jump")[1]
    played = vfgym.to_chat("FrozenLake-v1", on_invalid="noop", noop_action="up", invalid_reward=-0.25, **options)
    assert replies(played, "jump")[1].endswith("\n\nReward: -0.25")


@pytest.mark.parametrize("seed", range(3))
def test_the_rewards_that_are_told_are_those_that_are_emitted(seed: int) -> None:
    env = vfgym.to_chat("CartPole-v1", show=["reward"])
    env.reset(seed=seed)
    env.action_space.seed(seed)
    for _ in range(8):
        outcome = env.step(env.action_space.sample())
        assert f"Reward: {outcome.reward:g}" in outcome.observation[-1].content.split("\n")


# Legal actions


def test_taxi_tells_what_is_legal_at_each_move() -> None:
    env = vfgym.to_chat("Taxi-v4")
    observation, info = env.reset(seed=0)
    for _ in range(5):
        assert observation[-1].content.endswith(f"\nLegal actions: {', '.join(info['legal_actions'])}")
        observation, _, _, _, info = env.step(info["legal_actions"][-1])


@pytest.mark.parametrize("beside", [None, {"wind": spaces.Discrete(3)}])
@pytest.mark.parametrize("on_invalid", ["feedback", "random"])
def test_a_mask_in_the_observation_is_told_as_one_in_the_info_is(beside: Any, on_invalid: Any) -> None:
    """And ``legal_actions`` and random moves follow the same mask."""
    env = vfgym.to_chat(lambda: Masked("observation", beside=beside), on_invalid=on_invalid)
    observation, info = env.reset(seed=0)
    state = "0" if beside is None else "observation: 0\nwind: 1"
    assert observation[-1].content.endswith(f"</action>\n\n{state}\n\nLegal actions: 0")
    assert info["legal_actions"] == ["0"]
    if on_invalid == "random":
        for _ in range(4):
            observation, *_, info = env.step("I do not know.")
        assert [int(action) for action in env.state.session.game.played] == [0, 1, 2, 0]
        assert info["legal_actions"] == ["1"]
        assert observation[-1].content.endswith("\n\nLegal actions: 1")


def test_a_mask_is_left_in_the_observation_where_legal_actions_are_not_told() -> None:
    first, reply = replies(vfgym.to_chat(lambda: Masked("observation"), show=()), "0")
    assert first.endswith("\n\naction_mask: [1, 0, 0]\nobservation: 0")
    assert reply == "action_mask: [0, 1, 0]\nobservation: 1"


def test_nothing_is_legal_once_the_game_is_over() -> None:
    *_, last = replies(vfgym.to_chat(Masked), "0", "1", "2", "0", "1")
    assert last == "5\n\nThe game is over."


def test_of_very_many_legal_actions_the_first_and_the_number_are_told() -> None:
    class Many(Masked):
        def mask(self) -> Any:
            return np.arange(500) % 5 != 0

    first, _ = replies(vfgym.to_chat(lambda: Many(action_space=spaces.Discrete(500))), "1")
    listed = ", ".join(str(action) for action in range(20) if action % 5)
    assert first.endswith(f"\n\nLegal actions: {listed}, and 384 more")


def test_where_nothing_is_legal_that_is_told() -> None:
    class Stuck(Masked):
        def mask(self) -> Any:
            return [0, 0, 0]

    assert replies(vfgym.to_chat(Stuck))[0].endswith("\n\nLegal actions: none")


def test_the_mask_of_several_choices_is_told_as_it_is() -> None:
    class Choices(Masked):
        def mask(self) -> Any:
            return np.array([0, 1], np.int8), np.array([1, 1, 0], np.int8)

    first, _ = replies(vfgym.to_chat(lambda: Choices(action_space=spaces.MultiDiscrete([2, 3]))), "[1, 0]")
    assert first.endswith("\n\nAction mask: [[0, 1], [1, 1, 0]]")


def test_a_mask_that_does_not_fit_is_named_at_reset() -> None:
    class Wrong(Masked):
        def mask(self) -> Any:
            return [1, 0]

    with pytest.raises(ConfigurationError, match=r"expected a mask of shape \(3,\)"):
        vfgym.to_chat(Wrong).reset(seed=0)


# Steps


def test_steps_are_counted_to_the_limit_of_the_game_or_of_the_episode() -> None:
    def steps(**options: Any) -> list[str]:
        return [text.rpartition("\n")[2] for text in replies(vfgym.to_chat("CartPole-v1", show=("step",), **options), "0", "1")]

    assert steps() == ["Step 0 of 500", "Step 1 of 500", "Step 2 of 500"]
    assert steps(max_turns=5) == ["Step 0 of 5", "Step 1 of 5", "Step 2 of 5"]
    assert steps(max_turns=600) == ["Step 0 of 500", "Step 1 of 500", "Step 2 of 500"]
    assert replies(vfgym.to_chat(Masked, show=("step",)), "0") == [replies(vfgym.to_chat(Masked, show=("step",)))[0], "1\n\nStep 1"]


def test_an_answer_that_names_no_action_is_no_step_but_uses_up_a_turn() -> None:
    first, _, third = replies(vfgym.to_chat("CartPole-v1", show=("step",), max_turns=5), "jump", "0")
    assert first.endswith("Step 0 of 5")
    assert third.endswith("Step 1 of 4")


# Together


def test_all_is_told_below_the_observation_in_one_order() -> None:
    env = vfgym.to_chat(Masked, show=("step", "legal", "reward"), max_turns=4, as_tool=True)
    observation, _ = env.reset(seed=0)
    assert observation[-1].content.endswith("\n\n0\n\nStep 0 of 4\nLegal actions: 0")
    call = AssistantMessage(None, tool_calls=[ToolCall("call_1", "act", '{"action": 0}')])
    reply = env.step(call).observation[-1]
    assert (reply.role, reply.content) == ("tool", "1\n\nReward: -0.5\nStep 1 of 4\nLegal actions: 1")


def test_images_are_followed_by_what_is_told() -> None:
    env = vfgym.to_chat("CartPole-v1", observe="image", show=("reward",))
    env.reset(seed=0)
    image, text = env.step("0").observation[-1].content
    assert (image["type"], text) == ("image_url", {"type": "text", "text": "Reward: 1"})
    env.close()


@pytest.mark.parametrize("history", [0, 1])
def test_a_limited_history_keeps_what_is_told_of_the_last_move(history: int) -> None:
    env = vfgym.to_chat("CliffWalking-v1", history=history, show=ALL)
    assert replies(env, "up", "right", "down")[-1].count("Reward: -100") == 1


@pytest.mark.parametrize("show", [(), ALL])
@pytest.mark.parametrize("game_id", ["CliffWalking-v1", "Taxi-v4", "CartPole-v1"])
def test_the_game_itself_is_the_same_whatever_is_told(game_id: str, show: Any) -> None:
    back, native = vfgym.to_gym(vfgym.to_chat(game_id, show=show)), gym.make(game_id)
    native.action_space.seed(1)
    np.testing.assert_equal(back.reset(seed=1), native.reset(seed=1))
    for _ in range(20):
        action = native.action_space.sample()
        np.testing.assert_equal(back.step(action), native.step(action))


def test_wrapped_ids_take_it() -> None:
    env: Any = gym.make("gymnasium/CliffWalking-v1", show=[], disable_env_checker=True)
    assert gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()), disable_env_checker=True).unwrapped.show == ()
    env.reset(seed=0)
    assert "Reward" not in env.step("right")[0][-1].content
    assert json.loads(env.spec.to_json())["kwargs"]["show"] == []


@pytest.mark.parametrize("make", [lambda: vfgym.to_chat("Taxi-v4", show=ALL), lambda: vfgym.to_chat("CartPole-v1", show=("step",))])
def test_a_copy_in_the_middle_tells_the_same(make: Any) -> None:
    env = make()
    env.reset(seed=0)
    env.step("1")
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other.step("0").observation == copy.deepcopy(env).step("0").observation


def test_a_mask_in_the_observation_survives_a_copy() -> None:
    env = vfgym.to_chat(MaskedObservation)
    env.reset(seed=0)
    other = pickle.loads(pickle.dumps(env))
    assert other.step("0").observation[-1].content == "1\n\nLegal actions: 1"


class MaskedObservation(Masked):
    """Its mask is in the observation."""

    def __init__(self) -> None:
        super().__init__("observation")


@pytest.mark.parametrize(
    ("show", "problem"),
    [
        (("rewards",), "got 'rewards'. Did you mean `reward`?"),
        (["legal", "turn"], "got 'turn'"),
        ("reward", "must be a list of 'reward', 'legal', 'step'"),
        (3, "must be a list"),
        ([["reward"]], "show can hold"),
    ],
)
def test_what_cannot_be_told_is_refused(show: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        vfgym.to_chat("CartPole-v1", show=show)
    assert problem in str(caught.value)
