"""Episodes that checks play, and what is said of them where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.wrappers import OrderEnforcing

from tests.environments import RandomTalk, Talk
from vfgym import Response, Rubric, SingleTurnEnv
from vfgym.checks.comparison import Broken
from vfgym.checks.episodes import (
    LONGEST,
    as_plain,
    describe_message,
    episode_of,
    expect_same_episodes,
    find_difference,
    play_episode,
    record_episodes,
    score_of,
    timings_of,
)
from vfgym.messages import AssistantMessage, ToolCall


def test_an_episode_is_played_to_its_end_or_cut_off() -> None:
    assert (len(play_episode(Talk(max_turns=3), 0)), len(play_episode(Talk(max_turns=-1), 0))) == (1 + 3, 1 + LONGEST)
    turns = play_episode(Talk(max_turns=2), 0, ["first", "second"])
    assert [turn[0] for turn in turns[1:]] == ["first", "second"]
    _, (*_, terminated, truncated, _) = play_episode(SingleTurnEnv([{"question": "a"}]), 0, ["once", "twice"])
    assert (terminated, truncated) == (True, False)
    replies = [play_episode(RandomTalk(max_turns=3), seed, ["a", "b", "c"])[1][1] for seed in (0, 5, 5)]
    assert replies[0] != replies[1] == replies[2]


def test_without_an_episode_there_is_none_to_look_at() -> None:
    with pytest.raises(Broken, match=r"reset\(\) began no episode"):
        episode_of(Talk())


def test_the_score_is_that_of_the_whole_episode_and_ends_it() -> None:
    env = Talk(max_turns=5, rubric=Rubric(lambda state: len(state["trajectory"]) + 0.5))
    env.reset(seed=0)
    env.step("a")
    assert (score_of(env), env.state["stop_condition"]) == (1.5, "truncated")
    play_episode(env, 0)
    assert score_of(env) == 5.5


def test_a_record_has_seeded_episodes_and_closes_the_environment() -> None:
    env = RandomTalk(max_turns=3)
    first, second = record_episodes(env), record_episodes(RandomTalk(max_turns=3))
    assert ([len(episode) for episode in first], env.cleaned, first) == ([4, 4, 4], 3, second)
    assert first[1] != first[2], "an episode without a seed goes on with the random numbers"
    expect_same_episodes(first, second, "two runs")


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ([[{"a": 1}]], [[{"a": 2}]], r"two runs from the same seed differ, first in reset\(\) of episode 1: 1 and 2"),
        ([[0], [0, [1, {"b": "x"}]]], [[0], [0, [1, {"b": "y"}]]], "in turn 1 of episode 2: 'x' and 'y'"),
        ([[0, 1, 2]], [[0, 1]], "episode 1 has 2 turns and 1"),
        ([[{"a": 1}]], [[{"b": 1}]], "{'a': 1} and {'b': 1}"),
        ([[[1]]], [[[1, 2]]], r"\[1\] and \[1, 2\]"),
    ],
)
def test_where_records_differ_is_said(first: Any, second: Any, says: str) -> None:
    with pytest.raises(Broken, match=says):
        expect_same_episodes(first, second, "two runs")


def test_a_difference_is_found_behind_what_is_equal() -> None:
    assert find_difference({"a": [1, 2, 3], "b": 0}, {"a": [1, 2, 4], "b": 1}) == ("3", "4")
    assert find_difference(None, 0) == ("None", "0")


def test_metrics_that_are_named_are_left_out_at_any_depth() -> None:
    value = [{"seconds": 1, "kept": {"seconds": 2, "x": (3,)}}]
    assert as_plain(value, ["seconds"]) == [{"kept": {"x": [3]}}]
    assert as_plain(value) == [{"seconds": 1, "kept": {"seconds": 2, "x": [3]}}]
    assert as_plain({"a": np.arange(2), "b": np.float32(0.5), "c": ...}) == {"a": [0, 1], "b": 0.5, "c": "Ellipsis"}


def test_metrics_that_measure_seconds_are_those_of_the_rubric() -> None:
    class Timed(Rubric):
        timing_names = ["judge_seconds"]  # type: ignore[assignment]

    assert timings_of(OrderEnforcing(Talk(rubric=Timed()))) == ["judge_seconds"]
    assert timings_of(Talk()) == []


@pytest.mark.parametrize(
    ("message", "description"),
    [
        ("42", "'42'"),
        (AssistantMessage("said", tool_calls=[ToolCall("1", "x", "{}")]), "'said'"),
        (AssistantMessage(None, tool_calls=[ToolCall("1", "x", "{}"), ToolCall("2", "y", "[]")]), "calling x({}), calling y([])"),
        (AssistantMessage(None), "None"),
        (AssistantMessage(None, tool_calls=[ToolCall("1", "x", "y" * 81)]), f"calling x({'y' * 80})"),
        ("x" * 99, f"'{'x' * 99}"),
        (Response("", 0, "", None, AssistantMessage("in a response")), "'in a response'"),
    ],
)
def test_messages_are_described_in_a_few_words(message: Any, description: str) -> None:
    assert describe_message(message) == description
