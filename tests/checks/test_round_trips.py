"""`check_environment` plays and scores what an environment was made of beside it, and reports what differs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import vfgym
from tests.checks.promises import DATASET, SCORE, TEXT, TOOL, WORDS, broken, kept
from vfgym.codecs.discrete import DiscreteCodec
from vfgym.messages import Message
from vfgym.state import State
from vfgym.wrappers.games.turns import Turn
from vfgym.wrappers.gymnasium.game import GymnasiumGame
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv

# Games of Gymnasium


def cartpole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


@pytest.mark.parametrize("env_id", ["gymnasium/CartPole-v1", "gymnasium/Taxi-v4", "gymnasium/Pendulum-v1", "gymnasium/Blackjack-v1"])
def test_a_game_of_gymnasium_is_the_game_again(env_id: str) -> None:
    assert kept(env_id) == {WORDS: "100 samples", TEXT: "100 moves", TOOL: "100 moves"}


class Altered(GymnasiumGame):
    def __init__(self, change: Callable[[Turn, State], None], **kwargs: Any) -> None:
        super().__init__(cartpole, name="CartPole", **kwargs)
        self.change = change

    def make_move(self, game: Any, message: Message, state: State) -> Turn:
        turn = super().make_move(game, message, state)
        self.change(turn, state)
        return turn


def pays_more(turn: Turn, state: State) -> None:
    turn.reward += 0.25


def rounds(turn: Turn, state: State) -> None:
    state["observation"] = np.round(state["observation"], 5)


def widens(turn: Turn, state: State) -> None:
    state["observation"] = state["observation"].astype(np.float64)


def goes_on(turn: Turn, state: State) -> None:
    turn.terminated = False


def tells_more(turn: Turn, state: State) -> None:
    state["game_info"] = {**state["game_info"], "hint": "left"}


@pytest.mark.filterwarnings("ignore:.*even though this environment has already returned terminated:UserWarning")
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (pays_more, "the game's reward of move 1"),
        (rounds, "the observation of move 1"),
        (widens, "the observation of move 1"),
        (goes_on, "terminated and truncated of move"),
        (tells_more, "the info of move 1"),
    ],
)
def test_a_game_that_is_not_the_same_any_more_is_reported(change: Any, what: str) -> None:
    failed = broken(lambda: Altered(change))
    assert list(failed) == [TEXT]
    assert what in failed[TEXT]
    failed = broken(lambda: Altered(change, as_tool=True))
    assert list(failed) == [TEXT, TOOL]
    assert what in failed[TOOL]


class MirroredText(DiscreteCodec):
    def encode(self, action: Any) -> str:
        return self.names[-1 - int(action)]


class MirroredData(DiscreteCodec):
    def from_json(self, data: Any) -> Any:
        return self.space.n - 1 - super().from_json(data)


@pytest.mark.parametrize("codec", [MirroredText, MirroredData])
def test_a_codec_that_reads_another_action_than_it_wrote_is_reported(codec: type[DiscreteCodec]) -> None:
    def make() -> vfgym.ChatEnv:
        env: Any = vfgym.to_chat("FrozenLake-v1")
        env.codec = codec(env.codec.space, env.codec.names)
        return env

    assert "which is read as" in broken(make)[WORDS]


# Datasets of reasoning-gym


def legs(kind: type[ReasoningGymEnv] = ReasoningGymEnv, **arguments: Any) -> Callable[[], ReasoningGymEnv]:
    pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")
    return lambda: kind(**{"gym": "leg_counting", "num_train_examples": 4, "num_eval_examples": 2, **arguments})


@pytest.mark.parametrize("gym", ["leg_counting", "graph_color", ["chain_sum", "boxnet"]])
def test_a_dataset_of_reasoning_gym_is_scored_by_its_own_scorer(gym: Any) -> None:
    assert kept(legs(gym=gym)) == {SCORE: "answers to 3 task(s)", DATASET: "3 entries"}


def test_another_score_than_the_datasets_is_reported() -> None:
    class Lenient(ReasoningGymEnv):
        def check_answer_reward_func(self, completion: Any, info: Any) -> float:
            return math.sqrt(super().check_answer_reward_func(completion, info))

    class Strict(ReasoningGymEnv):
        def check_answer_reward_func(self, completion: Any, info: Any) -> float:
            return math.floor(super().check_answer_reward_func(completion, info))

    for kind in (Lenient, Strict):
        failed = broken(legs(kind, gym="graph_color"))
        assert list(failed) == [SCORE]
        assert "and the dataset's scorer gives 0.01" in failed[SCORE]


def test_entries_that_were_changed_are_reported() -> None:
    class Polite(ReasoningGymEnv):
        def setup_state(self, state: State) -> Any:
            self.items.entry(state["example_id"])["question"] = "Please count."
            return super().setup_state(state)

    def make() -> ReasoningGymEnv:
        env = legs(Polite)()
        env.reset(options={"example_id": 0})
        return env

    failed = broken(make)
    assert DATASET in failed
    assert "the entry number 0 should be" in failed[DATASET]
