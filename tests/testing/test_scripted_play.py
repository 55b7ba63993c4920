"""`play`: scripted episodes, what came of them, and what is said where something else was expected."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.wrappers import TransformReward

import vfgym
from tests.environments import Echo, RandomTalk
from vfgym import AssistantMessage, Response, Rubric, ToolEnv
from vfgym.endings import Ending
from vfgym.errors import ConfigurationError, InvalidAction, ModelError, OverlongPromptError
from vfgym.messages import ToolCall
from vfgym.testing import call, play


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


def make(**kwargs: Any) -> ToolEnv:
    rubric = Rubric(lambda completion, answer: float(completion[-1]["content"] == answer) if completion else 0.0)
    rubric.add_step_reward_func(lambda completion: 0.25, 1.0)
    rows = [{"question": "1 + 2?", "answer": "3"}, {"question": "2 + 2?", "answer": "4"}]
    return ToolEnv(tools=[add], dataset=rows, rubric=rubric, **kwargs)


def test_an_episode_has_what_was_shown_and_earned() -> None:
    played = play(make(), [call("add", a=1, b=2), "3"], options={"example_id": 0})
    assert ([len(each) for each in played.observations], played.rewards) == ([1, 3, 4], [0.25, 1.25])
    assert (played.reward, played.terminated, played.truncated, played.is_over) == (1.5, True, False, True)
    assert (played.stop_condition, played.ending, played.metrics["add_calls"]) == ("no_tools_called", Ending.TERMINATED, 1.0)
    assert [[message["content"] for message in reply] for reply in played.replies] == [["3"], []]
    assert played.messages is played.observations[-1]
    assert played.info is played.infos[-1]
    assert (len(played.infos), played.state["reward"]) == (3, played.reward)
    assert repr(played) == "PlayedEpisode(2 answers, reward=1.5, stop_condition='no_tools_called')"


def test_a_script_that_is_too_long_is_a_failure_with_the_conversation() -> None:
    with pytest.raises(AssertionError, match=r"(?s)the episode was over after 2 of 4 answers.*you said a.*ended by 'max_turns_reached'"):
        play(Echo(max_turns=2), ["a", "b", "c", "d"])


def test_every_kind_of_answer_is_played() -> None:
    answers = [
        "text",
        AssistantMessage("message"),
        {"role": "assistant", "content": "dict"},
        Response("", 0, "", None, AssistantMessage("r")),
    ]
    played = play(Echo(max_turns=9), [*answers, lambda observation, info: f"turn {len(observation)} of {info['example_id']}"])
    said = [reply[0]["content"].removeprefix("you said ") for reply in played.replies]
    assert said == ["text", "message", "dict", "r", "turn 9 of 0"]
    with pytest.raises(InvalidAction):
        play(Echo(), [7])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("error", "stop_condition", "ending"),
    [(ModelError("gone"), "has_error", "policy_failed"), (OverlongPromptError("long"), "prompt_too_long", "cut")],
)
def test_an_exception_is_a_model_that_fails(error: Exception, stop_condition: str, ending: str) -> None:
    played = play(Echo(max_turns=9), ["a", error]).expect(stop_condition=stop_condition)
    assert played.ending is not None
    if stop_condition != "has_error":
        played.expect(ending=ending)
    else:
        assert played.ending.failed
        assert "gone" in str(played)
    assert (played.terminated, played.truncated) == (stop_condition == "has_error", stop_condition != "has_error")
    assert play(Echo(max_turns=9), [lambda observation, info: error]).stop_condition == stop_condition


def test_tool_calls_get_ids_of_their_own_but_keep_those_they_have() -> None:
    played = play(
        make(), [[call("add", a=1), call("add", a=2)], [call("add", a=3), call("add", a=4, call_id="mine")], ToolCall("x", "add", "{")]
    )
    ids = [[each.id for each in message["tool_calls"]] for message in played.messages if message.get("tool_calls")]
    assert ids == [["call_1_1", "call_1_2"], ["call_2_1", "mine"], ["x"]]
    assert ([[answer["tool_call_id"] for answer in reply] for reply in played.replies], call("add").arguments) == (ids, "{}")
    assert call("say", text="ä", tool="x").arguments == '{"text": "\\u00e4", "tool": "x"}'


def test_seed_and_options_are_those_of_the_episode() -> None:
    def said(**kwargs: Any) -> Any:
        return play(RandomTalk(), ["a"], **kwargs).replies[0][0]["content"]

    assert said() == said(seed=0) == said(seed=0)
    assert len({said(seed=seed) for seed in range(5)}) > 1
    assert [play(make(), [], options={"example_id": number}).messages[-1]["content"] for number in (0, 1)] == ["1 + 2?", "2 + 2?"]
    env = RandomTalk()
    assert len({play(env, ["a"], seed=None).replies[0][0]["content"] for _ in range(5)}) > 1, "None goes on with the random numbers"


def test_wrappers_are_played_through_and_the_environment_is_left_open() -> None:
    env = TransformReward(make(), lambda reward: 10 * reward)
    played = play(env, ["3"], options={"example_id": 0})
    assert played.reward == 12.5
    assert played.state is env.unwrapped.state  # type: ignore[attr-defined]
    play(env, ["3"])


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ({"reward": 1.0}, r"the reward should be 1.0, and is 1.5 \(by turns: \[0.25, 1.25\]\)"),
        ({"reward": 0.0}, "the reward should be 0.0"),
        ({"metrics": {"add_calls": 0.0}}, "the metric 'add_calls' should be 0.0, and is 1.0"),
        ({"reward": 1.5 + 1e-6}, "the reward should be 1.500001"),
        ({"metrics": {"add_calls": 1.0, "num_turns": 3.0}}, "the metric 'num_turns' should be 3.0, and is 2.0"),
        ({"metrics": {"add": 1.0}}, "there is no metric 'add'; there are .*add_calls"),
        ({"stop_condition": "max_turns_reached"}, "it should have ended by 'max_turns_reached', and is 'no_tools_called'"),
        ({"ending": "cut"}, "its ending should be 'cut', and is 'terminated'"),
        ({"says": "4"}, r"'4' should stand in what the environment said last: \[\]"),
    ],
)
def test_what_differs_is_said_with_the_conversation(expected: Any, says: str) -> None:
    played = play(make(), [call("add", a=1, b=2), "3"], options={"example_id": 0})
    with pytest.raises(
        AssertionError, match=f"(?s){says}.*1 \\+ 2.*\\[2 answers, reward 1.5, ended by 'no_tools_called' \\(terminated\\)\\]"
    ):
        played.expect(**expected)


def test_all_that_differs_is_said_at_once_and_what_is_right_passes() -> None:
    played = play(Echo(max_turns=5), ["a"])
    with pytest.raises(AssertionError) as failed:
        played.expect(reward=1.0, stop_condition="x", ending="cut", says="b", metrics={"num_turns": 5.0})
    assert [line.partition(" ")[0] for line in str(failed.value).split("\n")[:5]] == ["the", "the", "it", "its", "'b'"]
    assert "and goes on" in str(failed.value)
    assert "not over" in str(failed.value)
    full = play(make(), [call("add", a=1, b=2), "3"], options={"example_id": 0})
    assert play(make(), [], options={"example_id": 0}).expect(says="+ 2?", reward=0.0).stop_condition is None
    assert play(make(), [(call("add", a=1), call("add", a=2))]).expect(says="1").expect(says="2")
    assert full.expect(reward=1.5 + 1e-12, metrics={"num_turns": 2.0}, stop_condition="no_tools_called", ending="terminated") is full


def test_what_is_no_script_or_no_environment_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be a list, with one for each turn, got the text 'yes'"):
        play(Echo(), "yes")
    with pytest.raises(ConfigurationError, match=r"vfgym\.to_chat"):
        play(gym.make("CartPole-v1"), [])
    assert vfgym.testing.play is play
