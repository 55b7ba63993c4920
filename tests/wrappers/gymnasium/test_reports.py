"""`show`: what a model is told of a move besides the observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import vfgym
from tests.wrappers.gymnasium.toys import Toy
from vfgym.codecs import codec_for
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.wrappers.gymnasium.reports import MoveReport, choose_pieces

ALL = ("reward", "legal", "step")


def replies(game: Any, *answers: Any, **options: Any) -> list[str]:
    env = vfgym.to_chat(game, **options)
    return [env.reset(seed=0)[0][-1].content, *(env.step(answer).observation[-1].content for answer in answers)]


class Masked(Toy):
    """Allows one action at a time, the next one at each step; five steps. Its mask is in the info."""

    length = 5

    def step(self, action: Any) -> Any:
        observation, _, *ends, info = super().step(action)
        return observation, -0.5 * self.count, *ends, info

    def seen(self) -> Any:
        self.info = {"action_mask": self.mask()}
        return self.count

    def mask(self) -> Any:
        return np.eye(3, dtype=np.int8)[self.count % 3]


class MaskedObservation(Masked):
    """Its mask is in the observation."""

    observation_space = spaces.Dict({"observation": spaces.Discrete(10), "action_mask": spaces.MultiBinary(3)})

    def seen(self) -> Any:
        return {"observation": self.count, "action_mask": self.mask()}


class Windy(MaskedObservation):
    observation_space = spaces.Dict({**MaskedObservation.observation_space.spaces, "wind": spaces.Discrete(3)})

    def seen(self) -> Any:
        return {**super().seen(), "wind": 1}


def test_a_move_says_what_it_earned() -> None:
    first, *told = replies("CliffWalking-v1", "right", "up")
    assert "Reward" not in first.rpartition("</action>")[2]
    assert [text.rpartition("\n\n")[2] for text in told] == ["Reward: -100", "Reward: -1"]
    assert "\nReward: -10\n" in replies("Taxi-v4", "5")[1]
    assert replies("FrozenLake-v1", "right", is_slippery=False, desc=["SG"])[1].endswith("S[G]\n\nReward: 1\n\nThe game is over.")


@pytest.mark.parametrize(
    ("game_id", "show"), [("Blackjack-v1", ("reward", "legal")), ("FrozenLake8x8-v1", ("reward", "legal")), ("CartPole-v1", ("legal",))]
)
def test_rewards_are_told_by_default_in_toy_texts_alone(game_id: str, show: tuple[str, ...]) -> None:
    for game in (game_id, lambda: gym.make(game_id)):
        assert vfgym.to_chat(game).show == show
        assert ("Reward: " in replies(game, "0")[1]) == ("reward" in show)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"invalid_reward": -0.25}, True),
        ({}, False),
        ({"invalid_reward": -0.25, "show": ()}, False),
        ({"invalid_reward": -0.25, "on_invalid": "noop", "noop_action": "up"}, True),
    ],
)
def test_what_an_invalid_answer_costs_is_told_where_it_costs_anything(options: dict[str, Any], told: bool) -> None:
    reply = replies("FrozenLake-v1", "jump", is_slippery=False, **options)[1]
    assert reply.endswith("\n\nReward: -0.25") if told else "Reward" not in reply


# Legal actions

FIRST = ", ".join(str(action) for action in range(20) if action % 5)


def test_taxi_tells_what_is_legal_at_each_move() -> None:
    env = vfgym.to_chat("Taxi-v4")
    observation, info = env.reset(seed=0)
    for _ in range(5):
        assert 0 < len(info["legal_actions"]) == info["game_info"]["action_mask"].sum() < 6
        assert observation[-1].content.endswith(f"\nLegal actions: {', '.join(info['legal_actions'])}")
        observation, _, _, _, info = env.step(info["legal_actions"][-1])


@pytest.mark.parametrize(("game", "state"), [(MaskedObservation, "0"), (Windy, "observation: 0\nwind: 1")])
def test_a_mask_in_the_observation_is_told_as_one_in_the_info_is(game: Any, state: str) -> None:
    """And ``legal_actions`` and random moves follow the same mask."""
    env = vfgym.to_chat(game, on_invalid="random")
    observation, info = env.reset(seed=0)
    assert observation[-1].content.endswith(f"</action>\n\n{state}\n\nLegal actions: 0")
    assert info["legal_actions"] == ["0"]
    for _ in range(4):
        observation, *_, info = env.step("I do not know.")
    assert [int(action) for action in env.state.session.game.played] == [0, 1, 2, 0]
    assert info["legal_actions"] == ["1"]
    assert observation[-1].content.endswith("\n\nLegal actions: 1")


def test_a_mask_is_left_in_the_observation_where_legal_actions_are_not_told() -> None:
    first, reply = replies(MaskedObservation, "0", show=())
    assert first.endswith("\n\naction_mask: [1, 0, 0]\nobservation: 0")
    assert reply == "action_mask: [0, 1, 0]\nobservation: 1"


@pytest.mark.parametrize(
    ("mask", "space", "told"),
    [
        (np.arange(500) % 5 != 0, spaces.Discrete(500), f"Legal actions: {FIRST}, and 384 more"),
        ([0, 0, 0], spaces.Discrete(3), "Legal actions: none"),
        ((np.array([0, 1], np.int8), np.array([1, 1, 0], np.int8)), spaces.MultiDiscrete([2, 3]), "Action mask: [[0, 1], [1, 1, 0]]"),
    ],
    ids=["many", "none", "several choices"],
)
def test_masks_of_other_sizes_and_spaces_are_told(mask: Any, space: Any, told: str) -> None:
    assert replies(lambda: Toy(info={"action_mask": mask}, action_space=space))[0].endswith(f"\n\n{told}")


def test_a_mask_that_does_not_fit_is_named_at_reset() -> None:
    with pytest.raises(ConfigurationError, match=r"expected a mask of shape \(3,\)"):
        replies(lambda: Toy(info={"action_mask": [1, 0]}))


@pytest.mark.parametrize(
    ("game", "max_turns", "answers", "steps"),
    [
        ("CartPole-v1", -1, "01", ["Step 0 of 500", "Step 1 of 500", "Step 2 of 500"]),
        ("CartPole-v1", 5, "01", ["Step 0 of 5", "Step 1 of 5", "Step 2 of 5"]),
        ("CartPole-v1", 600, "01", ["Step 0 of 500", "Step 1 of 500", "Step 2 of 500"]),
        ("CartPole-v1", 5, "x0", ["Step 0 of 5", None, "Step 1 of 4"]),  # what names no action is no step, and uses up a turn
        (Toy, -1, "0", ["Step 0", "Step 1"]),
    ],
)
def test_steps_are_counted_to_the_limit_of_the_game_or_of_the_episode(game: Any, max_turns: int, answers: str, steps: list[Any]) -> None:
    told = replies(game, *answers, show=("step",), max_turns=max_turns)
    assert [step is None or text.rpartition("\n")[2] == step for text, step in zip(told, steps, strict=True)] == [True] * len(steps)


def test_all_is_told_below_the_observation_in_one_order() -> None:
    env = vfgym.to_chat(Masked, show=("step", "legal", "reward"), max_turns=4, as_tool=True)
    observation, _ = env.reset(seed=0)
    assert observation[-1].content.endswith("\n\n0\n\nStep 0 of 4\nLegal actions: 0")
    reply = env.step(AssistantMessage(None, tool_calls=[ToolCall("call_1", "act", '{"action": 0}')])).observation[-1]
    assert (reply.role, reply.content) == ("tool", "1\n\nReward: -0.5\nStep 1 of 4\nLegal actions: 1")
    *_, last = replies(Masked, *"01201", show=ALL)
    assert last == "5\n\nReward: -2.5\nStep 5\n\nThe game is over."


def test_images_are_followed_by_what_is_told() -> None:
    env = vfgym.to_chat("CartPole-v1", observe="image", show=("reward",))
    env.reset(seed=0)
    image, text = env.step("0").observation[-1].content
    assert (image["type"], text) == ("image_url", {"type": "text", "text": "Reward: 1"})
    env.close()


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


@pytest.mark.parametrize(
    ("show", "pieces"), [((), ()), ([], ()), (["step", "reward", "step"], ("reward", "step")), ({"legal"}, ("legal",))]
)
def test_each_piece_is_told_once_and_in_one_order(show: Any, pieces: tuple[str, ...]) -> None:
    assert choose_pieces(show, Toy()) == pieces


CODEC = codec_for(spaces.Discrete(3))


@pytest.mark.parametrize(
    ("pieces", "given", "lines"),
    [
        ((), {}, ""),
        (ALL, {}, "Reward: 0\nStep 0 of 0\nLegal actions: 1"),
        (ALL, {"reward": None, "most_moves": None}, "Step 0\nLegal actions: 1"),
        (ALL, {"reward": -0.0, "moves": 2, "most_moves": 9, "is_over": True}, "Reward: 0\nStep 2 of 9"),
        (("reward",), {"reward": 1.23456789}, "Reward: 1.23457"),
        (("legal",), {"info": {}}, ""),
        (("legal",), {"observation": {"action_mask": [1, 0, 1]}}, "Legal actions: 0, 2"),
        (("legal",), {"info": {"admissible_commands": ["look"], "action_mask": [1, 1, 0]}}, "Legal actions: 0, 1"),
    ],
)
def test_what_is_told_of_a_move(pieces: Any, given: dict[str, Any], lines: str) -> None:
    of_move = {"observation": 5, "info": {"action_mask": [0, 1, 0]}, "reward": 0.0, "moves": 0, "most_moves": 0, **given}
    assert MoveReport(pieces, spaces.Discrete(9), CODEC).lines(**of_move) == lines


def test_legal_commands_are_those_that_a_game_of_text_lists() -> None:
    report = MoveReport(("legal",), spaces.Text(9), codec_for(spaces.Text(9)))
    for commands, line in ((["look", "go"], "look, go"), ([], "none")):
        info = {"admissible_commands": commands}
        assert report.lines("A room.", info, reward=0.0, moves=1, most_moves=None) == f"Legal actions: {line}"


@pytest.mark.parametrize(
    ("pieces", "space", "needs_no_info"),
    [
        ((), Windy.observation_space, False),
        (("reward",), spaces.Discrete(3), True),
        (("step",), spaces.Discrete(3), True),
        (("legal",), spaces.Discrete(3), False),
        (("legal",), Windy.observation_space, True),
    ],
)
def test_which_reports_have_lines_without_an_info(pieces: Any, space: Any, needs_no_info: bool) -> None:
    report = MoveReport(pieces, space, CODEC)
    assert report.needs_no_info is needs_no_info
    for reward in (0.0, None):
        assert report.after("No.", reward) == "No."
    assert report.after("No.", -0.5) == ("No.\n\nReward: -0.5" if "reward" in pieces else "No.")
