"""`GymnasiumGame`: a Gymnasium environment as a chat environment: what is played, what is told, and which options there are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

import verifiers_compat as vf
import vfgym
from tests.wrappers.games.nim import NimEnv
from vfgym.errors import ConfigurationError, InvalidAction
from vfgym.messages import AssistantMessage, ToolCall, content_text
from vfgym.testing import ScriptedClient


class Counter(gym.Env[Any, Any]):
    """Counts the steps: the observation is how many there were."""

    def __init__(self, info: Mapping[str, Any] | None = None, action_space: gym.Space[Any] | None = None) -> None:
        self.observation_space = gym.spaces.Discrete(1000)
        self.action_space = gym.spaces.Discrete(3) if action_space is None else action_space
        self.info = {} if info is None else info
        self.count = 0
        self.played: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count, self.played = 0, []
        return self.count, self.info

    def step(self, action: Any) -> Any:
        self.count += 1
        self.played.append(action)
        return 100 + self.count, 1.0, self.count == 20, False, self.info


def calls(*actions: int) -> AssistantMessage:
    """Return a message that calls the tool once for each action."""
    return AssistantMessage(None, tool_calls=[ToolCall(f"call_{n}", "act", f'{{"action": {action}}}') for n, action in enumerate(actions)])


def text_of(conversation: list[Any]) -> str:
    """Return all that stands in a conversation."""
    return "\n".join(content_text(message["content"] or "") for message in conversation)


@pytest.mark.parametrize("history", [0, 1, 2])
def test_a_limited_history_shows_how_the_game_stands_after_answers_that_name_no_action(history: int) -> None:
    env = vfgym.to_chat(Counter, history=history)
    env.reset(seed=0)
    env.step("1")
    for _ in range(history + 2):
        shown, *_ = env.step("I do not know.")
    assert "101" in text_of(shown)
    assert "names no action" in content_text(shown[-1]["content"])


def test_a_tools_result_that_only_points_at_an_image_does_not_become_part_of_the_prompt() -> None:
    env = vfgym.to_chat("CartPole-v1", observe="image", as_tool=True, history=0)
    env.reset(seed=0)
    shown, *_ = env.step(calls(1))
    env.close()
    assert "See below." not in text_of(shown)


@pytest.mark.parametrize("options", [{"on_invalid": "noop", "noop_action": 0}, {"on_invalid": "random"}])
def test_whoever_calls_twice_is_shown_what_was_played_instead(options: dict[str, Any]) -> None:
    env = vfgym.to_chat(Counter, as_tool=True, **options)
    env.reset(seed=0)
    conversation, *_ = env.step(calls(1, 2))
    first, second = conversation[-2:]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("call_0", "call_1")
    assert "101" in first["content"]


@pytest.mark.parametrize("mask", [[0, 0, 1], (0, 0, 1), np.array([0, 0, 1]), np.array([False, False, True])], ids=str)
def test_a_random_action_keeps_to_any_mask_that_legal_actions_are_read_from(mask: Any) -> None:
    env = vfgym.to_chat(lambda: Counter({"action_mask": mask}), on_invalid="random")
    _, info = env.reset(seed=0)
    assert info["legal_actions"] == ["2"]
    env.step("I do not know.")
    assert env.state is not None
    assert env.state.session.game.played == [2]


def test_a_random_action_keeps_to_the_masks_of_several_choices() -> None:
    masks = (np.array([0, 1], np.int8), np.array([1, 0, 0], np.int8))
    env = vfgym.to_chat(lambda: Counter({"action_mask": masks}, gym.spaces.MultiDiscrete([2, 3])), on_invalid="random")
    for seed in range(10):
        env.reset(seed=seed)
        env.step("I do not know.")
        assert env.state is not None
        np.testing.assert_equal(env.state.session.game.played, [[1, 0]])


def test_what_is_played_at_random_is_the_same_in_steps_and_in_rollouts() -> None:
    answers = ["I do not know."] * 8

    def game() -> Any:
        return vfgym.to_chat(Counter, on_invalid="random", max_turns=len(answers))

    env = game()
    env.reset(seed=3)
    for answer in answers:
        env.step(answer)
    assert env.state is not None
    rolled_out = asyncio.run(vf.as_environment(game()).rollout({"prompt": [], "example_id": 3, "seed": 3}, ScriptedClient(answers), "m"))
    assert text_of(rolled_out["completion"]) == text_of(env.state["completion"])


def test_what_a_turn_was_told_does_not_change_when_the_game_reuses_its_info() -> None:
    class Reusing(Counter):
        def step(self, action: Any) -> Any:
            observation, *rest, _ = super().step(action)
            self.info = getattr(self, "kept", {})
            self.kept = self.info
            self.info["count"] = self.count
            return observation, *rest, self.info

    env = vfgym.to_chat(Reusing)
    env.reset(seed=0)
    for _ in range(3):
        env.step("1")
    assert env.state is not None
    assert [step["extras"]["game_info"]["count"] for step in env.state["trajectory"]] == [1, 2, 3]


def test_a_game_may_tell_what_cannot_be_copied() -> None:
    lock = threading.Lock()
    env = vfgym.to_chat(lambda: Counter({"lock": lock, "lives": 3}))
    _, info = env.reset(seed=0)
    assert info["game_info"]["lives"] == 3
    _, reward, *_ = env.step("1")
    assert reward == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"history": True},
        {"max_invalid_moves": "3"},
        {"max_invalid_moves": 1.5},
        {"invalid_reward": None},
        {"invalid_reward": "low"},
        {"obs_to_text": 5},
        {"prompt": 5},
        {"rules": 5},
    ],
    ids=str,
)
def test_an_option_of_the_wrong_kind_is_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigurationError, match=name):
        vfgym.to_chat("CartPole-v1", **options)


def test_a_chat_environment_is_not_made_a_chat_environment_again() -> None:
    with pytest.raises(ConfigurationError, match="chat environment"):
        vfgym.to_chat("gymnasium/CartPole-v1")


def test_an_id_may_name_the_module_that_registers_it() -> None:
    conversation, _ = vfgym.to_chat("gymnasium:CartPole-v1").reset(seed=0)
    assert "CartPole-v1" in text_of(conversation)


@pytest.mark.parametrize(
    "make",
    [lambda: vfgym.to_chat(Counter, history=0, render_mode="human"), lambda: NimEnv(sticks=30, opponents="self", render_mode="human")],
)
def test_a_human_sees_every_turn(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make()
    env.reset(seed=0)
    for _ in range(3):
        capsys.readouterr()
        shown, *_ = env.step("1")
        assert content_text(shown[-1]["content"]).rpartition("\n")[2] in capsys.readouterr().out


def test_a_converted_game_with_a_limited_history_tells_its_one_player_what_happened() -> None:
    game = vfgym.to_textarena(vfgym.to_chat(Counter, history=0))
    game.reset(num_players=1, seed=0)
    game.get_observation()
    for count in (1, 2, 3):
        game.step("1")
        _, told = game.get_observation()
        assert str(100 + count) in "\n".join(text for _, text, _ in told)


@pytest.mark.parametrize("options", [{}, {"on_invalid": "random"}, {"on_invalid": "noop", "noop_action": [0.0]}], ids=str)
def test_an_action_outside_the_space_is_refused_and_not_replaced_on_the_way_back(options: dict[str, Any]) -> None:
    """The raw game clips such an action; what must not happen is that another one, or none, is played without a word."""
    game = vfgym.to_gym(vfgym.to_chat("Pendulum-v1", **options))
    bare = gym.make("Pendulum-v1").unwrapped
    game.reset(seed=0)
    bare.reset(seed=0)
    with pytest.raises(InvalidAction):
        game.step(np.array([5.0], np.float32))
    action = np.array([1.0], np.float32)
    np.testing.assert_equal(game.step(action)[0], bare.step(action)[0])


@pytest.mark.parametrize(
    ("env_id", "options"),
    [("gymnasium/CartPole-v1", {"action_names": {0: "west", 1: "east"}}), ("textarena/TicTacToe-v0", {"opponents": {1: "random"}})],
)
def test_mappings_by_number_survive_a_spec_as_json(env_id: str, options: dict[str, Any]) -> None:
    """JSON has no numbers as keys."""
    env = gym.make(env_id, **options)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))  # type: ignore[union-attr]
    assert again.reset(seed=0)[0] == env.reset(seed=0)[0]


# What is played, and what is told of it


class Choosing(Counter):
    """Its actions have names, and its first ends it."""

    def step(self, action: Any) -> Any:
        observation, *_ = super().step(action)
        return observation, 2.0, bool(action == 0), False, self.info


@pytest.mark.parametrize(
    ("options", "reward", "flags", "played"),
    [
        ({}, 0.0, (False, False), []),
        ({"invalid_reward": -0.5}, -0.5, (False, False), []),
        ({"on_invalid": "terminate", "invalid_reward": -1}, -1.0, (True, False), []),
        ({"on_invalid": "noop", "noop_action": 0}, 1.0, (False, False), [0]),
        ({"on_invalid": "noop", "noop_action": "1", "invalid_reward": -0.25}, 0.75, (False, False), [1]),
        ({"on_invalid": "noop", "noop_action": np.int64(2)}, 1.0, (False, False), [2]),
    ],
    ids=str,
)
def test_an_answer_that_names_no_action_leads_to_what_on_invalid_says(
    options: dict[str, Any], reward: float, flags: tuple[bool, bool], played: list[int]
) -> None:
    env = vfgym.to_chat(Counter, **options)
    env.reset(seed=0)
    outcome = env.step("I do not know.")
    assert (outcome.reward, outcome[2:4], env.state.session.game.played) == (reward, flags, played)
    assert env.state["invalid_answers"] == 1
    assert ("Instead, " in outcome.observation[-1].content) == bool(played)
    assert env.why_no_action(AssistantMessage("I do not know."), env.state)
    assert env.why_no_action(AssistantMessage("1"), env.state) is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"on_invalid": "noop"}, "needs to know which action does nothing: give noop_action"),
        ({"on_invalid": "noop", "noop_action": 3}, "noop_action must be an action of Discrete"),
        ({"on_invalid": "noop", "noop_action": "wait"}, "or its name; got 'wait'"),
        ({"noop_action": 0}, 'noop_action is what on_invalid="noop" plays'),
        ({"on_invalid": "ignore"}, "on_invalid must be one of feedback, terminate, noop, random; got 'ignore'"),
        ({"invalid_reward": True}, "invalid_reward must be a number"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        vfgym.to_chat(Counter, **options)


@pytest.mark.parametrize(("count", "listed"), [(1000, True), (1001, False)])
def test_all_actions_are_legal_where_nothing_says_otherwise_and_they_can_be_listed(count: int, listed: bool) -> None:
    env = vfgym.to_chat(lambda: Counter(action_space=gym.spaces.Discrete(count, start=1)), rules="Count.")
    _, info = env.reset(seed=0)
    assert info.get("legal_actions", []) == [str(number) for number in range(1, count + 1)][: count * listed]
    assert env.step("1").info.get("legal_actions", []) == info.get("legal_actions", [])


def test_moves_are_listed_as_the_prompt_lists_them_and_under_a_mask_as_it_allows_them() -> None:
    env = vfgym.to_chat(Counter, action_names=["a", "b", "c"])
    env.reset(seed=0)
    assert env.listed_moves(env.state) == ["0 (a)", "1 (b)", "2 (c)"]
    assert env.describe_moves(env.state) == "0 (a), 1 (b), 2 (c)"
    masked = vfgym.to_chat(lambda: Counter({"action_mask": [0, 1, 0]}), action_names=["a", "b", "c"])
    _, info = masked.reset(seed=0)
    assert masked.listed_moves(masked.state) == info["legal_actions"] == ["b"]


def test_at_the_end_nothing_is_legal_and_the_end_is_said() -> None:
    env = vfgym.to_chat(Choosing)
    env.reset(seed=0)
    assert env.step("1").reward == 2.0
    outcome = env.step("0")
    assert (outcome.terminated, outcome.observation[-1].content) == (True, "102\n\nThe game is over.")
    assert "legal_actions" not in outcome.info
    assert outcome.info["native_observation"] == 102

    class Cut(Counter):
        def step(self, action: Any) -> Any:
            observation, reward, *_ = super().step(action)
            return observation, reward, False, self.count == 2, {}

    limited = vfgym.to_chat(Cut)
    limited.reset(seed=0)
    limited.step("1")
    outcome = limited.step("1")
    assert (outcome[2:4], outcome.observation[-1].content) == ((False, True), "102\n\nThe game was cut off after 2 steps.")


@pytest.mark.parametrize(
    ("reset", "step", "error"),
    [
        ((3, {}), None, "step of a Gymnasium game must return .* got NoneType"),
        ((3, {}), (0, 1.0, False, False, 3), r"got \(int, float, bool, bool, int\)"),
        ((3, {}), (0, "x", False, False, {}), r"got \(int, str, bool, bool, dict\)"),
        (3, None, "reset of a Gymnasium game must return .* got int"),
        ((3, 4), None, r"got \(int, int\)"),
        ((3, {}, 4), None, r"got \(int, dict, int\)"),
    ],
)
def test_what_a_game_returns_by_mistake_is_named(reset: Any, step: Any, error: str) -> None:
    class Mistaken(Counter):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            return reset

        def step(self, action: Any) -> Any:
            return step

    env = vfgym.to_chat(Mistaken)
    with pytest.raises((TypeError, ConfigurationError), match=error):  # noqa: PT012 -- whichever fails
        env.reset(seed=0)
        env.step("1")


def test_bounds_of_rewards_follow_from_limits() -> None:
    assert vfgym.to_chat("Blackjack-v1").reward_range == (-1.0, 1.0)
    assert vfgym.to_chat("CartPole-v1").reward_range is None
    assert vfgym.to_chat(Counter).reward_range is None
    assert vfgym.to_chat("CliffWalking-v1", max_turns=0).failure_reward == vfgym.to_chat("CliffWalking-v1").failure_reward
    assert vfgym.to_chat("CliffWalking-v1", max_turns=2).failure_reward == -200
    assert vfgym.to_chat("CliffWalking-v1", max_turns=2, invalid_reward=-300).failure_reward == -800
    assert vfgym.to_chat("CliffWalking-v1", max_turns=2, failure_reward=0.0).failure_reward == 0.0
