"""`GymnasiumGame`: a Gymnasium environment as a chat environment: what is played, what is told, and which options there are."""

from __future__ import annotations

import asyncio
import string
import threading
import types
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import verifiers_compat as vf
import vfgym
from tests.wrappers.games.nim import NimEnv
from tests.wrappers.gymnasium.toys import Toy, first_content
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, ToolCall, content_text
from vfgym.testing import ScriptedClient
from vfgym.wrappers.gymnasium.game import GymnasiumGame, IsPettingZoo

NO_ACTION = "I do not know."


def toy(options: dict[str, Any] | None = None, **attributes: Any) -> Any:
    env = vfgym.to_chat(lambda: Toy(**attributes), **(options or {}))
    env.reset(seed=0)
    return env


def calls(*actions: Any) -> AssistantMessage:
    return AssistantMessage(None, tool_calls=[ToolCall(f"call_{n}", "act", f'{{"action": {action}}}') for n, action in enumerate(actions)])


def text_of(conversation: list[Any]) -> str:
    return "\n".join(content_text(message["content"] or "") for message in conversation)


@pytest.mark.parametrize("history", [0, 1, 2])
def test_a_limited_history_shows_how_the_game_stands_after_answers_that_name_no_action(history: int) -> None:
    env = toy({"history": history}, seen=lambda: "a castle", observation_space=gym.spaces.Text(20))
    env.step("1")
    for _ in range(history + 2):
        shown, *_ = env.step(NO_ACTION)
    assert "a castle" in text_of(shown)
    assert "names no action" in content_text(shown[-1]["content"])


def test_a_tools_result_that_only_points_at_an_image_does_not_become_part_of_the_prompt() -> None:
    env = vfgym.to_chat("CartPole-v1", observe="image", as_tool=True, history=0)
    env.reset(seed=0)
    assert "See below." not in text_of(env.step(calls(1))[0])
    env.close()


def test_actions_can_be_a_tool() -> None:
    env = vfgym.to_chat("FrozenLake-v1", is_slippery=False, as_tool=True)
    (tool,) = env.reset(seed=0)[1]["tools"]
    schema = tool["function"]["parameters"]["properties"]["action"]
    assert (tool["function"]["name"], schema["enum"]) == ("act", ["left", "down", "right", "up"])
    assert "calling the tool `act`" in env.state["prompt"][0].content
    reply = env.step(calls('"right"')).observation[-1]
    assert (reply.role, reply.tool_call_id, "S[F]FF" in reply.content) == ("tool", "call_0", True)
    assert "SF[F]F" in env.step("<action>right</action>").observation[-1].content
    outcome = env.step(calls('"right"', '"left"'))
    assert [reply.tool_call_id for reply in outcome.observation[-2:]] == ["call_0", "call_1"]
    assert (int(env.state["observation"]), outcome.reward) == (2, 0.0)


@pytest.mark.parametrize("options", [{"on_invalid": "noop", "noop_action": 0}, {"on_invalid": "random"}])
def test_whoever_calls_twice_is_shown_what_was_played_instead(options: dict[str, Any]) -> None:
    first, second = toy({"as_tool": True, **options}).step(calls(1, 2)).observation[-2:]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("call_0", "call_1")
    assert first["content"].endswith(" was played.\n\n1")


@pytest.mark.parametrize("mask", [[0, 0, 1], (0, 0, 1), np.array([0, 0, 1]), np.array([False, False, True])], ids=str)
def test_a_random_action_keeps_to_any_mask_that_legal_actions_are_read_from(mask: Any) -> None:
    env = toy({"on_invalid": "random"}, info={"action_mask": mask})
    assert env.step(NO_ACTION).info["legal_actions"] == ["2"]
    assert env.state.session.game.played == [2]


def test_a_random_action_keeps_to_the_masks_of_several_choices() -> None:
    masks, space = (np.array([0, 1], np.int8), np.array([1, 0, 0], np.int8)), gym.spaces.MultiDiscrete([2, 3])
    env = toy({"on_invalid": "random"}, info={"action_mask": masks}, action_space=space)
    for seed in range(10):
        env.reset(seed=seed)
        env.step(NO_ACTION)
        np.testing.assert_equal(env.state.session.game.played, [[1, 0]])
    env = toy({"on_invalid": "random"}, info={"action_mask": np.ones(5, np.int8)}, action_space=space)
    with pytest.raises(ValueError, match="expected an action mask of MultiDiscrete"):
        env.step(NO_ACTION)


def test_random_actions_follow_from_the_seed_in_steps_and_in_rollouts() -> None:
    def played(seed: int) -> Any:
        env = toy({"on_invalid": "random", "max_turns": 8})
        env.reset(seed=seed)
        for _ in range(8):
            env.step(NO_ACTION)
        return env.state["completion"]

    assert text_of(played(3)) == text_of(played(3)) != text_of(played(4))
    game = vf.as_environment(toy({"on_invalid": "random", "max_turns": 8}))
    rolled_out = asyncio.run(game.rollout({"prompt": [], "example_id": 3, "seed": 3}, ScriptedClient([NO_ACTION] * 8), "m"))
    assert text_of(rolled_out["completion"]) == text_of(played(3))


def test_what_a_turn_was_told_does_not_change_when_the_game_reuses_its_info() -> None:
    class Reusing(Toy):
        def step(self, action: Any) -> Any:
            self.info["count"] = self.count
            return super().step(action)

    lock = threading.Lock()  # cannot be copied
    env = vfgym.to_chat(lambda: Reusing(info={"lock": lock}))
    env.reset(seed=0)
    for _ in range(3):
        env.step("1")
    assert [step["extras"]["game_info"] for step in env.state["trajectory"]] == [{"lock": lock, "count": count} for count in range(3)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"history": True}, "history"),
        ({"history": -1}, "history"),
        ({"max_invalid_moves": "3"}, "max_invalid_moves"),
        ({"max_invalid_moves": 0}, "max_invalid_moves"),
        ({"invalid_reward": None}, "invalid_reward"),
        ({"invalid_reward": True}, "invalid_reward must be a number"),
        ({"obs_to_text": 5}, "obs_to_text"),
        ({"prompt": 5}, "prompt must be text"),
        ({"rules": 5}, "rules must be text"),
        ({"observe": "smell"}, "observe must be one of"),
        ({"action_names": ["left"]}, "one for each"),
        ({"on_invalid": "noop"}, "needs to know which action does nothing: give noop_action"),
        ({"on_invalid": "noop", "noop_action": 3}, "noop_action must be an action of Discrete"),
        ({"on_invalid": "noop", "noop_action": "wait"}, "or its name; got 'wait'"),
        ({"noop_action": 0}, 'noop_action is what on_invalid="noop" plays'),
        ({"on_invalid": "ignore"}, "on_invalid must be one of feedback, terminate, noop, random; got 'ignore'"),
        ({"max_actions_per_turn": 0}, "max_actions_per_turn must be a whole number of at least 1, got 0"),
        ({"max_actions_per_turn": True}, "at least 1, got True"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        vfgym.to_chat(Toy, **options)


@pytest.mark.parametrize(
    "make", [lambda: vfgym.to_chat(Toy, history=0, render_mode="human"), lambda: NimEnv(sticks=30, opponents="self", render_mode="human")]
)
def test_a_human_sees_every_turn(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make()
    env.reset(seed=0)
    for _ in range(3):
        capsys.readouterr()
        shown, *_ = env.step("1")
        assert content_text(shown[-1]["content"]).rpartition("\n")[2] in capsys.readouterr().out


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
    options: dict[str, Any], reward: float, flags: Any, played: Any
) -> None:
    env = toy(options)
    outcome = env.step(NO_ACTION)
    assert (outcome.reward, outcome[2:4], env.state.session.game.played) == (reward, flags, played)
    assert env.state["invalid_answers"] == 1
    assert env.state["trajectory"][0]["extras"]["invalid_answer"] is True
    reply = outcome.observation[-1].content
    assert ("names no action" in reply, "Instead, " in reply) == (True, bool(played))
    assert env.why_no_action(AssistantMessage(NO_ACTION), env.state)
    assert env.why_no_action(AssistantMessage("1"), env.state) is None
    if outcome.terminated:
        assert outcome.info["stop_condition"] == "too_many_invalid_moves"
    else:
        assert env.step("1").reward == 1.0
        assert "invalid_answer" not in env.state["trajectory"][1]["extras"]


def test_a_game_may_say_itself_which_action_does_nothing_and_may_write_into_it() -> None:
    env, native = vfgym.to_chat("MountainCar-v0", on_invalid="noop"), gym.make("MountainCar-v0")
    env.reset(seed=0)
    native.reset(seed=0)
    env.step(NO_ACTION)
    np.testing.assert_array_equal(env.state["observation"], native.step(1)[0])

    class Doubling(Toy):
        action_space = observation_space = gym.spaces.Box(-9, 9, (1,))

        def seen(self) -> Any:
            return np.zeros(1, np.float32)

        def step(self, action: Any) -> Any:
            action *= 2
            return action, float(action[0]), False, False, {}

    doubled = vfgym.to_chat(Doubling, on_invalid="noop", noop_action=[1.0])
    for seat in (doubled, doubled.fork()):
        seat.reset(seed=0)
        assert [seat.step(NO_ACTION).reward for _ in range(3)] == [2.0, 2.0, 2.0]


def test_texts_are_typed_as_they_are_meant_and_as_the_game_lists_them() -> None:
    space, commands = gym.spaces.Text(100, charset=string.printable), {"admissible_commands": ("look", "open mailbox", "Go", "GO")}
    env = toy(info=commands, action_space=space)
    assert "Actions: a text of 1 to 100 characters (letters, digits, punctuation, spaces, line breaks)." in first_content(env)
    for answer in (
        "Open  Mailbox",
        "<action>OPEN MAILBOX!</action>",
        "Action: open mailbox",
        "<action>Dance</action>",
        "<action>go</action>",
    ):
        env.step(answer)
    assert env.state.session.game.played == ["open mailbox"] * 3 + ["Dance", "go"]
    texts = ["open mailbox.", "**x**", "'x'", '"x"', "> x", "Action: x", "<|x|>", "[THINK]", "[/action]", ".", " x ", "<invoke name=act>"]
    native = vfgym.to_gym(toy(action_space=space))
    native.reset(seed=0)
    for text in texts:
        native.step(text)
    assert native.chat.state.session.game.played == texts


def test_the_prompt_can_be_replaced_in_part_or_whole() -> None:
    assert first_content(vfgym.to_chat(Toy, prompt="Count.")) == "Count.\n\n0"
    assert first_content(vfgym.to_chat(Toy, rules="Count.")).startswith("You are playing Toy.\n\nCount.\n\nActions: 0, 1, 2.\n\nAnswer")


@pytest.mark.parametrize(
    ("env_id", "options"),
    [("gymnasium/CartPole-v1", {"action_names": {0: "west", 1: "east"}}), ("textarena/TicTacToe-v0", {"opponents": {1: "random"}})],
)
def test_mappings_by_number_survive_a_spec_as_json(env_id: str, options: dict[str, Any]) -> None:
    """JSON has no numbers as keys."""
    env: Any = gym.make(env_id, **options)
    assert first_content(gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))) == first_content(env)


@pytest.mark.parametrize(("count", "listed"), [(2, True), (1000, True), (1001, False)])
def test_all_actions_are_legal_where_nothing_says_otherwise_and_they_can_be_listed(count: int, listed: bool) -> None:
    env = toy({"rules": "Count."}, action_space=gym.spaces.Discrete(count, start=1))
    for _ in range(2):
        assert env.step("1").info.get("legal_actions", []) == [str(number) for number in range(1, count + 1)][: count * listed]


def test_moves_are_listed_as_the_prompt_lists_them_and_under_a_mask_as_it_allows_them() -> None:
    names = {"action_names": ["a", "b", "c"]}
    env = toy(names)
    assert env.listed_moves(env.state) == ["0 (a)", "1 (b)", "2 (c)"]
    assert env.describe_moves(env.state) == "0 (a), 1 (b), 2 (c)"
    masked = toy(names, info={"action_mask": [0, 1, 0]})
    assert masked.listed_moves(masked.state) == masked.step("b").info["legal_actions"] == ["b"]


def test_at_the_end_nothing_is_legal_and_the_end_is_said() -> None:
    env = toy(length=2)
    env.step("1")
    outcome = env.step("0")
    assert (outcome.terminated, outcome.observation[-1].content) == (True, "2\n\nThe game is over.")
    assert ("legal_actions" in outcome.info, outcome.info["native_observation"]) == (False, 2)
    limited = vfgym.to_chat(lambda: gym.wrappers.TimeLimit(Toy(), 2))
    limited.reset(seed=0)
    limited.step("1")
    outcome = limited.step("1")
    assert (outcome[2:4], outcome.observation[-1].content) == ((False, True), "2\n\nThe game was cut off after 2 steps.")


@pytest.mark.parametrize(
    ("reset", "step", "error"),
    [
        ((3, {}), None, "step of a Gymnasium game must return .* got NoneType"),
        ((3, {}), (0, 1.0, False, {}), r"got \(int, float, bool, dict\)"),
        ((3, {}), (0, 1.0, False, False, 3), r"got \(int, float, bool, bool, int\)"),
        ((3, {}), (0, "x", False, False, {}), r"got \(int, str, bool, bool, dict\)"),
        ((3, {}), (0, np.zeros(2), False, False, {}), "If the reward is a vector, make it one number with a wrapper"),
        (3, None, "reset of a Gymnasium game must return .* got int"),
        ((3, 4), None, r"got \(int, int\)"),
        ((3, {}, 4), None, r"got \(int, dict, int\)"),
    ],
)
@pytest.mark.parametrize("on_invalid", ["feedback", "random"])
def test_what_a_game_returns_by_mistake_is_named(reset: Any, step: Any, error: str, on_invalid: Any) -> None:
    env = vfgym.to_chat(lambda: Toy(reset=lambda **options: reset, step=lambda action: step), on_invalid=on_invalid)
    with pytest.raises((TypeError, ConfigurationError), match=error):  # noqa: PT012 -- whichever fails
        env.reset(seed=0)
        env.step("1")


def test_an_error_inside_a_game_is_not_taken_for_one_of_the_interface() -> None:
    env = toy(step=lambda action: int("broken inside"))
    with pytest.raises(ValueError, match="broken inside"):
        env.step("1")


def test_what_is_no_game_of_gymnasium_is_refused_and_closed() -> None:
    made = types.SimpleNamespace(closed=0)
    made.close = lambda: vars(made).update(closed=made.closed + 1)
    with pytest.raises(ConfigurationError, match=r"^a function made a SimpleNamespace, which is not a gymnasium.Env$"):
        GymnasiumGame(lambda: made, name="a function")  # type: ignore[arg-type, return-value]
    assert made.closed == 1
    with pytest.raises(ConfigurationError, match=r"^Nim is a chat environment already: make it with gymnasium.make, or call the function$"):
        GymnasiumGame(NimEnv, name="Nim")
    games = pytest.importorskip("pettingzoo.classic.tictactoe_v3")
    with pytest.raises(IsPettingZoo, match=r"^Tic made a .*, which is for vfgym.PettingZooEnv$"):
        GymnasiumGame(games.raw_env, name="Tic")


@pytest.mark.parametrize("draws", [True, False])
def test_a_picture_is_the_games_own_or_the_image_that_it_is_shown_as(draws: bool) -> None:
    own, seen = np.zeros((6, 2, 3), np.uint8), np.full((84, 84, 3), 9, np.uint8)
    modes = {"metadata": {"render_modes": ["rgb_array"], "render_fps": 7}, "render_mode": "rgb_array", "render": lambda: own}
    options = {"render_mode": "rgb_array"} if draws else {}
    space = gym.spaces.Box(0, 255, seen.shape, np.uint8)
    env = toy({**options, "rules": "Look."}, seen=lambda: seen, observation_space=space, **(modes if draws else {}))
    np.testing.assert_array_equal(env.render_picture(env.state), own if draws else seen)
    assert env.metadata == {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 7 if draws else 4}


def test_what_is_told_below_the_observation() -> None:
    mask = {"action_mask": [0, 1, 1]}
    env = toy({"rules": "Count.", "show": ["reward", "legal", "step"], "max_turns": 9}, info=mask, length=2)
    assert first_content(env).partition("</action>\n\n")[2] == "0\n\nStep 0 of 9\nLegal actions: 1, 2"
    said = [env.step(answer).observation[-1].content for answer in (NO_ACTION, "1", "2")]
    assert said[1:] == ["1\n\nReward: 1\nStep 1 of 8\nLegal actions: 1, 2", "2\n\nReward: 1\nStep 2 of 8\n\nThe game is over."]


def test_bounds_of_rewards_follow_from_limits() -> None:
    assert vfgym.to_chat("Blackjack-v1").reward_range == (-1.0, 1.0)
    assert vfgym.to_chat("CartPole-v1").reward_range is vfgym.to_chat(Toy).reward_range is None

    def lowest(**options: Any) -> float:
        return vfgym.to_chat("CliffWalking-v1", **options).failure_reward  # type: ignore[no-any-return]

    assert lowest(max_turns=0) == lowest()
    assert [lowest(max_turns=2, **options) for options in ({}, {"invalid_reward": -300}, {"failure_reward": 0.0})] == [-200, -800, 0]
    assert (lowest(max_turns=5), lowest(max_turns=5, max_actions_per_turn=4)) == (-500, -2000)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4"])
def test_games_of_toy_text_that_are_copies_of_one_have_random_numbers_of_their_own(name: str) -> None:
    env: Any = vfgym.to_chat(name)
    games, made = [env.open_game() for _ in range(3)], gym.make(name)
    for game in games:
        np.testing.assert_equal(game.reset(seed=3), made.reset(seed=3))
        for _ in range(20):
            action = int(made.action_space.sample())
            np.testing.assert_equal(game.step(action), made.step(action))
    for own in ("np_random", "action_space"):
        assert len({id(getattr(game.unwrapped, own)) for game in games}) == 3
