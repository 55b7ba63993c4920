"""`to_chat`: a game played in words is the game itself."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import vfgym
from tests.environments import Brightening
from vfgym.errors import ConfigurationError, EpisodeNotPicklable, UnknownArgument
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.wrappers.games.images import frame_of

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
    assert "Pole Angle (radians): " in observation[-1].content
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
        assert (terminated, truncated) == (attempt == 2, False)
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


class Unrecorded(gym.Wrapper[Any, Any, Any, Any]):
    """Does not record its arguments, so that nobody can make it again."""


def test_what_cannot_be_played_in_words_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigurationError, match="give to_chat a function"):
        vfgym.to_chat(gym.make("CartPole-v1").unwrapped.__class__())
    with pytest.raises(ConfigurationError, match=r"its wrapper Unrecorded does not say .* give to_chat a function"):
        vfgym.to_chat(Unrecorded(gym.make("CartPole-v1")))
    with pytest.raises(ConfigurationError, match="got int"):
        vfgym.to_chat(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="one for each"):
        vfgym.to_chat("CartPole-v1", action_names=["left"])
    with pytest.raises(UnknownArgument, match="max_turns"):
        vfgym.to_chat(gym.spec("CartPole-v1"), max_turn=3)


class Board(gym.Env[Any, Any]):
    """Many numbers that are not an image."""

    observation_space = gym.spaces.Box(-1, 1, (40, 40), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, **kwargs: Any) -> Any:
        return np.zeros((40, 40)), {}


def test_a_large_observation_needs_obs_to_text() -> None:
    with pytest.raises(ConfigurationError, match="obs_to_text"):
        vfgym.to_chat(Board)
    observation, _ = vfgym.to_chat(Board, obs_to_text=lambda board: f"mean {board.mean()}").reset(seed=0)
    assert observation[-1].content.endswith("mean 0.0")


def frame_in(message: Any) -> np.ndarray[Any, Any]:
    (part,) = [part for part in message.content if part["type"] == "image_url"]
    return frame_of(part)


def test_a_drawing_is_shown_as_an_image() -> None:
    env = vfgym.to_chat("CartPole-v1", observe="image")
    native = gym.make("CartPole-v1", render_mode="rgb_array")
    native.reset(seed=3)
    observation, _ = env.reset(seed=3)
    assert np.array_equal(frame_in(observation[-1]), native.render())
    assert observation[-1].content[0]["text"].startswith("You are playing CartPole-v1.")
    native.step(1)
    observation = env.step("right").observation
    assert np.array_equal(frame_in(observation[-1]), native.render())
    assert len(observation[-1].content) == 1
    env.close()


class Picture(Brightening):
    """The same, over after three steps."""

    steps = 3


def test_observations_that_are_images_are_shown_as_images() -> None:
    env = vfgym.to_chat(Picture, as_tool=True, blocking=False)
    observation, _ = env.reset(seed=0)
    assert not frame_in(observation[-1]).any()
    answer = env.answers.as_call(np.int64(1), "call_7")
    observation = env.step(answer).observation
    assert (observation[-2].role, observation[-2].tool_call_id, observation[-1].role) == ("tool", "call_7", "user")
    assert (frame_in(observation[-1]) == 1).all()
    env.step("0")
    outcome = env.step("0")
    assert outcome.terminated
    assert (frame_in(outcome.observation[-1]) == 3).all()
    assert outcome.observation[-1].content[-1]["text"] == "The game is over."


def test_a_game_without_images_says_so() -> None:
    with pytest.raises(ConfigurationError, match=r"no images to show: .* to_chat\(gymnasium.make\(..., render_mode='rgb_array'\), ...\)"):
        vfgym.to_chat(Board, observe="image")
    with pytest.raises(ConfigurationError, match="no images to show"):
        vfgym.to_chat(lambda: gym.make("CartPole-v1"), observe="image")
    env = vfgym.to_chat(lambda: gym.make("CartPole-v1", render_mode="rgb_array"), observe="image")
    assert frame_in(env.reset(seed=0)[0][-1]).ndim == 3
    env.close()


class Drawing(Picture):
    """Draws what it does not show, if it is told to."""

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}
    observation_space = gym.spaces.Discrete(4)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def _frame(self) -> Any:
        return self.brightness

    def render(self) -> Any:
        return f"brightness {self.brightness}" if self.render_mode == "ansi" else super()._frame()


class Undrawing(Drawing):
    """Says that it draws, but cannot be told to."""

    def __init__(self) -> None:
        super().__init__()


def untold() -> gym.Env[Any, Any]:
    """Make a game that could draw, without a way to tell it."""
    return Drawing()


@pytest.mark.parametrize("entry_point", [Drawing, lambda **options: Drawing(**options), lambda render_mode=None: Drawing(render_mode)])
@pytest.mark.parametrize("by_spec", [False, True])
def test_whatever_makes_a_registered_game_it_is_made_to_draw_what_is_shown(registered: Any, entry_point: Any, by_spec: bool) -> None:
    registered("Drawing-v0", entry_point)
    source = gym.spec("Drawing-v0") if by_spec else "Drawing-v0"
    assert vfgym.to_chat(source).reset(seed=0)[0][-1].content.endswith("\n\nbrightness 0")
    assert not frame_in(vfgym.to_chat(source, observe="image").reset(seed=0)[0][-1]).any()
    _, text, image = vfgym.to_chat(source, observe="both").reset(seed=0)[0][-1].content
    assert (text["text"], image["type"]) == ("0", "image_url")


@pytest.mark.parametrize("entry_point", [Undrawing, untold])
def test_a_game_that_cannot_be_told_to_draw_is_shown_as_it_is(registered: Any, entry_point: Any) -> None:
    registered("Undrawing-v0", entry_point)
    assert vfgym.to_chat("Undrawing-v0").reset(seed=0)[0][-1].content.endswith("\n\n0")
    with pytest.raises(ConfigurationError, match="no images to show"):
        vfgym.to_chat("Undrawing-v0", observe="image")


@pytest.fixture
def registered() -> Any:
    """Register games for one test."""
    ids: list[str] = []

    def register(game_id: str, entry_point: Any) -> None:
        gym.register(game_id, entry_point)
        ids.append(game_id)

    yield register
    for game_id in ids:
        del gym.registry[game_id]


DUPLICATES = pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"])


@pytest.mark.parametrize("game_id", ["LunarLander-v3", "HalfCheetah-v5"])
@DUPLICATES
def test_a_game_that_is_copied_as_a_new_one_is_not_copied_in_the_middle(game_id: str, duplicate: Any) -> None:
    """Before and after an episode a copy plays as the original does; in the middle it would have lost the game."""
    pytest.importorskip("Box2D" if game_id == "LunarLander-v3" else "mujoco")
    env = vfgym.to_chat(game_id, max_turns=2)
    assert duplicate(env).reset(seed=3)[0] == env.reset(seed=3)[0]
    action = env.codec.example()
    for seat in (env, vfgym.to_gym(env), env.fork()):
        seat.reset(seed=3)
        with pytest.raises(EpisodeNotPicklable, match=r"arguments of its constructor only .* before its first reset"):
            duplicate(seat)
    outcome = env.step(action)
    with pytest.raises(EpisodeNotPicklable):
        duplicate(env)
    assert not outcome.truncated
    assert env.step(action).truncated
    twin = duplicate(env)
    assert twin.reset(seed=4)[0] == env.reset(seed=4)[0]
    assert twin.step(action).observation == env.step(action).observation
    env.close()
    duplicate(env).close()
    twin.close()


def test_an_atari_game_is_copied_as_a_new_one() -> None:
    """A copy's console has been switched on, and shows its first frames as the original did."""
    pytest.importorskip("ale_py")
    game = gym.make("ALE/Pong-v5", obs_type="ram")
    game.reset(seed=1)
    for _ in range(3):
        game.step(0)
    frames = [each.unwrapped.ale.getEpisodeFrameNumber() for each in (game, copy.deepcopy(game))]  # type: ignore[attr-defined]
    assert (frames[0] > 0, frames[1]) == (True, 0)
    env = vfgym.to_chat("ALE/Pong-v5")
    env.reset(seed=1)
    with pytest.raises(EpisodeNotPicklable, match="AtariEnv is pickled"):
        pickle.dumps(env)
    env.close()


class Counter(gym.Env[Any, Any], gym.utils.EzPickle):
    """Counts its moves; copied by its constructor's arguments."""

    observation_space = gym.spaces.Discrete(100)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        gym.utils.EzPickle.__init__(self)
        self.count = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return self.count, {}

    def step(self, action: Any) -> Any:
        self.count += 1
        return self.count, 0.0, False, False, {}


class SavedCounter(Counter):
    """Says itself what a copy needs."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "count": self.count}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.count = state["count"]


class RememberingWrapper(gym.Wrapper[Any, Any, Any, Any], gym.utils.EzPickle):
    """Keeps something that its copy does not get."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.EzPickle.__init__(self, env)
        super().__init__(env)


@DUPLICATES
def test_a_game_that_says_how_it_is_copied_is_copied_so(duplicate: Any) -> None:
    env = vfgym.to_chat(SavedCounter)
    env.reset(seed=0)
    env.step("1")
    assert duplicate(env).step("1").observation == env.step("1").observation
    for make_game, name in ((Counter, "Counter"), (functools.partial(RememberingWrapper, SavedCounter()), "RememberingWrapper")):
        env = vfgym.to_chat(make_game)
        env.reset(seed=0)
        with pytest.raises(EpisodeNotPicklable, match=name):
            duplicate(env)


def test_games_that_cannot_be_copied_are_played_side_by_side() -> None:
    """Forks, runs and vector environments copy none."""
    env = vfgym.to_chat(Counter, max_turns=3)
    env.reset(seed=0)
    env.step("1")
    other = env.fork()
    other.reset(seed=0)
    assert other.step("1").observation[-1].content == "1"
    assert env.step("1").observation[-1].content == "2"
    results = vfgym.evaluate(env, "random", num_examples=3, max_concurrent=2)
    assert [row["error"] for row in results["outputs"]] == [None] * 3
    seats = gym.vector.SyncVectorEnv([env.fork, env.fork])
    seats.reset(seed=[1, 2])
    assert [message[-1].content for message in seats.step(("1", "0"))[0]] == ["1", "1"]
    seats.close()


CALLS = [ToolCall("a", "act", '{"action": "right"}'), ToolCall("b", "act", '{"action": "left"}')]


def lake(**options: Any) -> Any:
    env = vfgym.to_chat("FrozenLake-v1", is_slippery=False, **options)
    env.reset(seed=0)
    return env


def test_actions_can_be_a_tool() -> None:
    env = lake(as_tool=True)
    (tool,) = env.reset(seed=0)[1]["tools"]
    schema = tool["function"]["parameters"]["properties"]["action"]
    assert (tool["function"]["name"], schema["enum"]) == ("act", ["left", "down", "right", "up"])
    assert "calling the tool `act`" in env.state["prompt"][0].content
    observation = env.step(AssistantMessage(None, tool_calls=CALLS[:1])).observation
    assert (observation[-1].role, observation[-1].tool_call_id) == ("tool", "a")
    assert "S[F]FF" in observation[-1].content
    assert "SF[F]F" in env.step("<action>right</action>").observation[-1].content


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        (CALLS, "Call `act` once a turn"),
        ([ToolCall("a", "act", '{"action": "jump"}')], "left"),
    ],
)
def test_a_call_that_plays_no_action_is_told_why_and_every_call_is_answered(calls: list[ToolCall], problem: str) -> None:
    env = lake(as_tool=True)
    outcome = env.step(AssistantMessage(None, tool_calls=calls))
    replies = outcome.observation[2:]
    assert [reply.tool_call_id for reply in replies] == [call.id for call in calls]
    assert problem in replies[0].content
    assert "[S]FFF" in env.state.session.game.unwrapped.render() or env.state.session.game.unwrapped.s == 0
    assert outcome.reward == 0.0


def test_a_call_where_there_is_no_tool_is_answered_too() -> None:
    env = lake()
    replies = env.step(AssistantMessage(None, tool_calls=CALLS)).observation[2:]
    assert [reply.tool_call_id for reply in replies] == ["a", "b"]
    assert "no tools" in replies[0].content


def test_an_invalid_answer_can_end_the_episode() -> None:
    env = lake(on_invalid="terminate", invalid_reward=-1)
    env.step("right")
    outcome = env.step("jump")
    assert (outcome.reward, outcome.terminated, outcome.truncated) == (-1.0, True, False)
    assert outcome.info["stop_condition"] == "too_many_invalid_moves"
    assert env.state["reward"] == -1.0


def test_an_invalid_answer_can_be_punished_and_tried_again() -> None:
    env = lake(invalid_reward=-0.25)
    assert env.step("jump").reward == -0.25
    assert env.step("right").reward == 0.0


def test_an_invalid_answer_can_stand_for_doing_nothing() -> None:
    env = vfgym.to_chat("MountainCar-v0", on_invalid="noop", invalid_reward=-0.5)
    native = gym.make("MountainCar-v0")
    env.reset(seed=0)
    native.reset(seed=0)
    outcome = env.step("jump")
    expected = native.step(1)
    assert np.array_equal(env.state["observation"], expected[0])
    assert outcome.reward == expected[1] - 0.5
    assert "names no action" in outcome.observation[-1].content
    assert "Instead" in outcome.observation[-1].content
    with pytest.raises(ConfigurationError, match="noop_action"):
        vfgym.to_chat("FrozenLake-v1", on_invalid="noop")
    with pytest.raises(ConfigurationError, match="noop_action"):
        vfgym.to_chat("FrozenLake-v1", on_invalid="noop", noop_action="jump")
    assert vfgym.to_chat("FrozenLake-v1", on_invalid="noop", noop_action="up").codec.decode("up") == 3


def test_a_game_that_writes_into_its_actions_gets_the_same_one_each_time_for_doing_nothing() -> None:
    class Doubling(gym.Env[Any, Any]):
        action_space = observation_space = gym.spaces.Box(-9, 9, (1,))

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            return np.zeros(1, np.float32), {}

        def step(self, action: Any) -> Any:
            action *= 2
            return action, float(action[0]), False, False, {}

    env = vfgym.to_chat(Doubling, on_invalid="noop", noop_action=[1.0])
    for seat in (env, env.fork()):
        seat.reset(seed=0)
        assert [seat.step("hm").reward for _ in range(3)] == [2.0, 2.0, 2.0]


def test_an_invalid_answer_can_play_at_random_from_the_seed() -> None:
    def places(seed: int) -> list[int]:
        env = vfgym.to_chat("FrozenLake-v1", on_invalid="random", is_slippery=False, desc=["S" + "F" * 7] * 8)
        env.reset(seed=seed)
        return [env.step("jump") and int(env.state["observation"]) for _ in range(12)]

    assert places(1) == places(1)
    assert places(1) != places(2)
    masked = vfgym.to_chat("Taxi-v4", on_invalid="random")
    _, info = masked.reset(seed=0)
    for _ in range(20):
        before = int(masked.state["observation"])
        legal = info["legal_actions"]
        info = masked.step("jump").info
        assert int(masked.state["observation"]) != before, legal


@pytest.mark.parametrize(
    ("on_invalid", "answers", "invalid"),
    [
        ("feedback", ["jump", "right", "jump"], [0, 2]),
        ("terminate", ["right", "jump"], [1]),
        ("random", ["jump", "right", "jump"], [0, 2]),
        ("noop", ["jump", "right", "jump"], [0, 2]),
    ],
)
def test_answers_that_name_no_action_are_told_whatever_they_lead_to(on_invalid: Any, answers: list[str], invalid: list[int]) -> None:
    game = {"is_slippery": False, "desc": ["S" + "F" * 7] * 8}
    env = vfgym.to_chat("FrozenLake-v1", on_invalid=on_invalid, noop_action=0 if on_invalid == "noop" else None, max_turns=3, **game)
    env.reset(seed=0)
    for answer in answers:
        outcome = env.step(answer)
    trajectory = env.state["trajectory"]
    assert [turn for turn, step in enumerate(trajectory) if step["extras"].get("invalid_answer")] == invalid
    assert all(("invalid_answer" in step["extras"]) == (turn in invalid) for turn, step in enumerate(trajectory))
    assert outcome.info["metrics"]["invalid_answers"] == len(invalid)
    env.reset(seed=0)
    for _ in range(3):
        outcome = env.step("right")
    assert outcome.info["metrics"]["invalid_answers"] == 0.0


def test_the_prompt_can_be_replaced() -> None:
    env = lake(prompt="Walk to G.")
    assert env.state["prompt"][0].content.startswith("Walk to G.\n\n")
    assert "Actions:" not in env.state["prompt"][0].content
    env = lake(rules="Walk to G.")
    assert "Walk to G." in env.state["prompt"][0].content
    assert "Actions: 0 (left)" in env.state["prompt"][0].content


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_invalid": "ignore"}, "on_invalid must be one of"),
        ({"noop_action": "up"}, "noop_action is what"),
        ({"observe": "smell"}, "observe must be one of"),
        ({"history": -1}, "history"),
        ({"max_invalid_moves": 0}, "max_invalid_moves"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        vfgym.to_chat("FrozenLake-v1", **options)


@pytest.mark.parametrize("game_id", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_a_game_with_continuous_actions(game_id: str) -> None:
    env = vfgym.to_chat(game_id)
    env.reset(seed=0)
    assert env.step("I push: [0.5]").info["game_info"] == {}
    observation = env.step("[7]").observation
    assert "must be" in observation[-1].content
    assert all(action in env.action_space for action in (env.action_space.sample() for _ in range(5)))


@pytest.mark.parametrize("options", [{}, {"as_tool": True}, {"history": 1}, {"on_invalid": "random"}, {"observe": "text"}])
@pytest.mark.parametrize("game_id", ["CartPole-v1", "Blackjack-v1", "Pendulum-v1"])
def test_a_copy_in_the_middle_goes_on_alone(game_id: str, options: dict[str, Any]) -> None:
    env = vfgym.to_chat(game_id, **options)
    env.reset(seed=3)
    env.action_space.seed(0)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        action = env.action_space.sample()
        assert data_equivalence(copy.deepcopy(env).step(action), other.step(action))


# Games that are not as Gymnasium wants them


class Returning(gym.Env[Any, Any]):
    """A game whose methods return what it is given."""

    observation_space = gym.spaces.Discrete(5)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, begun: Any = (0, {}), played: Any = (1, 0.0, False, False, {})) -> None:
        self.begun = begun
        self.played = played

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.begun

    def step(self, action: Any) -> Any:
        return self.played


@pytest.mark.parametrize(
    ("played", "came"),
    [
        ((1, 0.0, False, {}), r"got \(int, float, bool, dict\)"),
        (None, "got NoneType"),
    ],
)
@pytest.mark.parametrize("on_invalid", ["feedback", "random"])
def test_what_a_game_of_the_old_interface_returns_is_named(played: Any, came: str, on_invalid: Any) -> None:
    env = vfgym.to_chat(lambda: Returning(played=played), on_invalid=on_invalid)
    env.reset(seed=0)
    with pytest.raises(TypeError, match=f"step of a Gymnasium game must return .*{came}"):
        env.step("1")


@pytest.mark.parametrize("begun", [0, (0, None), (0, 1, {}), np.zeros(2)], ids=str)
def test_what_reset_of_the_old_interface_returns_is_named(begun: Any) -> None:
    env = vfgym.to_chat(lambda: Returning(begun=begun))
    with pytest.raises(ConfigurationError, match="reset of a Gymnasium game must return"):
        env.reset(seed=0)


def test_an_error_inside_a_game_is_not_taken_for_one_of_the_interface() -> None:
    class Broken(Returning):
        def step(self, action: Any) -> Any:
            raise ValueError("broken inside")

    env = vfgym.to_chat(Broken)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="broken inside"):
        env.step("1")


def test_a_mask_of_another_form_is_named_where_it_is_needed() -> None:
    class Masking(Returning):
        action_space = gym.spaces.MultiDiscrete([2, 3])  # type: ignore[assignment]

    env = vfgym.to_chat(lambda: Masking(begun=(0, {"action_mask": np.ones(5, np.int8)})), on_invalid="random")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="expected an action mask of MultiDiscrete"):
        env.step("I do not know.")


# What games are called


def test_a_game_is_called_by_its_id_or_its_class_whatever_makes_it() -> None:
    def title(env: Any) -> str:
        return str(env.reset(seed=0)[0][-1].content.partition("\n")[0])

    assert title(vfgym.to_chat(lambda: gym.make("CartPole-v1"))) == "You are playing CartPole-v1."
    assert title(vfgym.to_chat(lambda: gym.wrappers.TimeLimit(Returning(), 5))) == "You are playing Returning."
    assert title(vfgym.to_chat(functools.partial(Returning, begun=(1, {})))) == "You are playing Returning."
    assert title(vfgym.to_chat(Returning, name="a small game")) == "You are playing a small game."
    assert title(vfgym.to_chat("CartPole-v1", name="the cart")) == "You are playing the cart."


def test_the_limit_of_gymnasiums_make_is_told_as_it_is_called_here() -> None:
    with pytest.raises(UnknownArgument, match="Give max_turns, or a spec"):
        vfgym.to_chat("CartPole-v1", max_episode_steps=5)


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match="no module 'no_such_games'"):
        vfgym.to_chat("no_such_games:Chess-v0")


def test_sampled_calls_have_ids_of_their_own() -> None:
    env = lake(as_tool=True)
    env.action_space.seed(0)
    ids = [env.action_space.sample().tool_calls[0].id for _ in range(10)]
    assert len({*ids}) == 10


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_the_games_of_toy_text_share_the_table_of_their_moves_and_nothing_else(name: str) -> None:
    """A second and a third game play as one that Gymnasium makes, with random numbers of their own."""
    env: Any = gym.make(f"gymnasium/{name}").unwrapped
    games = [env.open_game() for _ in range(3)]
    made = gym.make(name, render_mode="ansi")
    assert all(game.unwrapped.P is games[0].unwrapped.P for game in games)
    assert made.unwrapped.P == games[0].unwrapped.P  # type: ignore[attr-defined]
    for game in games:
        assert game.spec == games[0].spec
        assert data_equivalence(game.reset(seed=3), made.reset(seed=3))
        for _ in range(20):
            action = int(made.action_space.sample())
            assert data_equivalence(game.step(action), made.step(action))
            assert game.render() == made.render()
    assert len({id(game.unwrapped.np_random) for game in games}) == 3
    assert len({id(game.action_space) for game in games}) == 3


def test_games_with_a_map_of_their_own_keep_it() -> None:
    env = vfgym.to_chat(lambda: gym.make("FrozenLake-v1", desc=None, map_name=None, render_mode="ansi"))
    maps = {env.open_game().unwrapped.desc.tobytes() for _ in range(6)}
    assert len(maps) > 1
