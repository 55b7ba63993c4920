"""`to_chat`: a game played in words is the game itself."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vfgym
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.wrappers.codec import ActionNotFound, DiscreteCodec
from vfgym.wrappers.observations import observation_text, without_colours

GAMES = [
    "Acrobot-v1",
    "Blackjack-v1",
    "CartPole-v1",
    "CliffWalking-v1",
    "CliffWalkingSlippery-v1",
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "MountainCar-v0",
    "Taxi-v4",
]


class Recorded(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps what a game said, so that it can be compared."""

    def __init__(self, env: gym.Env[Any, Any], history: list[Any]) -> None:
        super().__init__(env)
        self.history = history

    def reset(self, **kwargs: Any) -> Any:
        result = self.env.reset(**kwargs)
        self.history.append((kwargs.get("seed"), copy.deepcopy(result)))
        return result

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self.history.append((action, copy.deepcopy(result)))
        return result


@pytest.mark.parametrize("game_id", GAMES)
def test_same_seeds_and_actions_give_the_bare_games_observations_rewards_and_flags(game_id: str) -> None:
    """Gym → chat: what the game underneath says is bit-identical, over several episodes of one seed's stream."""
    history: list[Any] = []
    chat = vfgym.to_chat(lambda: Recorded(gym.make(game_id), history), obs_to_text=str)
    bare = gym.make(game_id)
    bare.action_space.seed(5)
    for seed in (11, None, None):
        history.clear()
        _, info = chat.reset(seed=seed)
        expected, expected_info = bare.reset(seed=seed)
        assert history[0][0] == seed
        np.testing.assert_equal(history[0][1], (expected, expected_info))
        np.testing.assert_equal(info["game_info"], expected_info)
        for turn in range(1, 200):
            action = bare.action_space.sample()
            text = chat.codec.encode(action)
            _, reward, terminated, truncated, info = chat.step(text)
            native = bare.step(action)
            assert history[turn][0] == action
            assert type(history[turn][0]) is type(action)
            np.testing.assert_equal(history[turn][1], native)
            assert (reward, terminated, truncated) == (float(native[1]), native[2], native[3])
            np.testing.assert_equal(info["game_info"], native[4])
            if terminated or truncated:
                assert info["stop_condition"] == "game_over"
                break


@pytest.mark.parametrize("game_id", GAMES)
def test_the_prompt_says_the_rules_the_actions_and_the_answer_format(game_id: str) -> None:
    env = vfgym.to_chat(game_id)
    observation, _ = env.reset(seed=0)
    prompt = observation[-1].content
    assert all(name in prompt for name in env.codec.names)
    assert "<action>" in prompt
    assert "Actions:" in prompt
    assert len(prompt) > 400
    assert "\x1b" not in prompt
    assert "```" not in prompt


def test_every_discrete_action_has_its_documented_name() -> None:
    assert vfgym.to_chat("FrozenLake-v1").codec.names == ["left", "down", "right", "up"]
    assert vfgym.to_chat("Blackjack-v1").codec.names == ["Stick", "Hit"]
    assert vfgym.to_chat("CartPole-v1").codec.names == ["left", "right"]
    assert vfgym.to_chat("Acrobot-v1").codec.names[1] == "apply 0 torque to the actuated joint"


def test_observations_are_labelled_where_the_game_documents_them() -> None:
    observation, _ = vfgym.to_chat("CartPole-v1").reset(seed=0)
    assert "Pole Angle: " in observation[-1].content
    observation, _ = vfgym.to_chat("Blackjack-v1").reset(seed=1)
    assert "Dealer showing card value: " in observation[-1].content


def test_a_game_that_masks_its_actions_tells_the_legal_ones() -> None:
    env = vfgym.to_chat("Taxi-v4")
    _, info = env.reset(seed=0)
    mask = info["game_info"]["action_mask"]
    assert info["legal_actions"] == [name for name, legal in zip(env.codec.names, mask, strict=True) if legal]
    assert 0 < len(info["legal_actions"]) < 6


def test_the_last_move_of_a_limited_game_counts() -> None:
    env = vfgym.to_chat("CartPole-v1", max_turns=3)
    env.reset(seed=0)
    total = 0.0
    for _ in range(3):
        _, reward, terminated, truncated, info = env.step("0")
        total += reward
    assert (total, terminated, truncated, info["stop_condition"]) == (3.0, False, True, "max_turns_reached")
    assert env.state["reward"] == 3.0


def test_the_games_own_end_beats_max_turns() -> None:
    env = vfgym.to_chat("Blackjack-v1", max_turns=1)
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step("Stick")
    assert (terminated, truncated, info["stop_condition"]) == (True, False, "game_over")


def test_the_games_own_truncation_stays_a_truncation() -> None:
    env = vfgym.to_chat(lambda: gym.make("MountainCar-v0", max_episode_steps=2))
    env.reset(seed=0)
    env.step("1")
    _, _, terminated, truncated, _ = env.step("1")
    assert (terminated, truncated) == (False, True)


def test_an_answer_that_names_no_action_is_told_so_and_changes_nothing() -> None:
    env = vfgym.to_chat("FrozenLake-v1", is_slippery=False, max_invalid_moves=3)
    env.reset(seed=0)
    env.step("Move right")
    for attempt in range(3):
        observation, reward, terminated, truncated, info = env.step("what?")
        assert reward == 0.0
        assert (terminated, truncated) == (False, attempt == 2)
    assert "names no action" in observation[-2].content or "names no action" in observation[-1].content
    assert info["stop_condition"] == "too_many_invalid_moves"
    env.reset(seed=0)
    env.step("what?")
    observation, *_ = env.step("Move right")
    assert "S[F]FF" in observation[-1].content


def test_an_id_passes_other_arguments_to_the_game() -> None:
    env = vfgym.to_chat("FrozenLake-v1", map_name="8x8", max_turns=2)
    observation, _ = env.reset(seed=0)
    assert "FFFFFFFF" in observation[-1].content
    assert env.max_turns == 2


@pytest.mark.parametrize(
    "make", [lambda: gym.make("CartPole-v1"), lambda: gym.spec("CartPole-v1"), lambda: lambda: gym.make("CartPole-v1")]
)
def test_a_game_a_spec_and_a_factory_do_as_well_as_an_id(make: Any) -> None:
    env, by_id = vfgym.to_chat(make(), rules="", obs_to_text=str), vfgym.to_chat("CartPole-v1", rules="", obs_to_text=str)
    text, text_by_id = (one.reset(seed=4)[0][-1].content.partition("\n\n")[2] for one in (env, by_id))
    assert text == text_by_id


def test_what_cannot_be_played_in_words_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigurationError, match=r"discrete actions.*Box"):
        vfgym.to_chat("Pendulum-v1")
    with pytest.raises(ConfigurationError, match="give to_chat a function"):
        vfgym.to_chat(gym.make("CartPole-v1").unwrapped.__class__())
    with pytest.raises(ConfigurationError, match="got int"):
        vfgym.to_chat(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="one for each"):
        vfgym.to_chat("CartPole-v1", action_names=["left"])
    with pytest.raises(UnknownArgument, match="max_turns"):
        vfgym.to_chat(gym.spec("CartPole-v1"), max_turn=3)


def test_a_large_observation_needs_obs_to_text() -> None:
    class Picture(gym.Env[Any, Any]):
        observation_space = gym.spaces.Box(0, 255, (32, 32, 3), np.uint8)
        action_space = gym.spaces.Discrete(2)

        def reset(self, **kwargs: Any) -> Any:
            return np.zeros((32, 32, 3), np.uint8), {}

    with pytest.raises(ConfigurationError, match="obs_to_text"):
        vfgym.to_chat(Picture)
    observation, _ = vfgym.to_chat(Picture, obs_to_text=lambda picture: f"mean {picture.mean()}").reset(seed=0)
    assert observation[-1].content.endswith("mean 0.0")


def test_a_game_in_the_middle_of_an_episode_can_be_pickled() -> None:
    env = vfgym.to_chat("Blackjack-v1")
    env.reset(seed=3)
    twin = pickle.loads(pickle.dumps(env.state.session.game.unwrapped))
    assert twin.player == env.state.session.game.unwrapped.player


@given(n=st.integers(1, 40), start=st.integers(-20, 20), data=st.data())
def test_decoding_an_encoded_action_gives_the_action(n: int, start: int, data: st.DataObject) -> None:
    names = data.draw(st.none() | st.lists(st.text("abc xyz", min_size=1), min_size=n, max_size=n, unique_by=lambda name: name.strip()))
    if names is not None and any(not name.strip() for name in names):
        names = None
    codec = DiscreteCodec(gym.spaces.Discrete(n, start=start), None if names is None else [name.strip() for name in names])
    for action in range(start, start + n):
        assert codec.decode(codec.encode(action)) == action
        assert codec.decode(str(action)) == action
        assert codec.decode(f"I will take <action> {codec.encode(action)} </action>.") == action


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("Move left", 0),
        ("move LEFT.", 0),
        ("`3`", 3),
        ("<think>right or up? 2</think> I go down: 1", 1),
        ("<think>right or up? 2</think> <action>1</action>", 1),
        ("<action>2</action> no, <action>1</action>", 1),
        ("Let us move right!", 2),
        ("**Move up**", 3),
        ("-1", None),
        ("1.5", None),
        ("4", None),
        ("10", None),
        ("", None),
        ("left or right", None),
        ("upright", None),
    ],
)
def test_reading_forgives_format_but_not_meaning(answer: str, action: int | None) -> None:
    codec = vfgym.to_chat("FrozenLake-v1").codec
    if action is None:
        with pytest.raises(ActionNotFound, match="Valid actions: 0"):
            codec.decode(answer)
    else:
        assert codec.decode(answer) == action


def test_colours_become_brackets() -> None:
    assert without_colours("S\x1b[41mF\x1b[0mFH\n") == "S[F]FH"
    assert without_colours("\x1b[34;1mR\x1b[0m|\x1b[43m \x1b[0m") == "[R:blue]|[ :yellow]"


def test_observation_text_shows_every_kind_of_small_observation() -> None:
    assert observation_text(3) == "3"
    assert observation_text(np.array([0.5, -1.0], np.float32), ("x", "y")) == "x: 0.5\ny: -1"
    assert observation_text(np.array([1, 2])) == "[1, 2]"
    assert observation_text({"hand": (1, 2), "turn": True}) == "hand: [1, 2]\nturn: True"
    assert observation_text("a text") == "a text"
