"""`GameEnv`: a game gets its seed verbatim, emits its rewards as they come, and its author's mistakes are told from the model's."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from tests.wrappers.games.counting import Answering, Counting, _rollout
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient, check_environment
from vfgym.wrappers.games.turns import Turn


def test_seeds_reach_the_game_verbatim_and_an_unseeded_reset_continues_it() -> None:
    env = Counting(blocking=False)
    _, first = env.reset(seed=17)
    env.reset()
    _, picked = env.reset(options={"example_id": 4})
    assert env.games[0].seeds == [17, None, 4]
    assert len(env.games) == 1
    assert (first["example_id"], picked["example_id"]) == (17, 4)


def test_rewards_are_emitted_as_they_come_and_sum_to_the_score() -> None:
    env = Counting(blocking=False)
    env.reset(seed=0)
    assert [env.step("up").reward for _ in range(3)] == [0.5, 0.5, 0.5]
    assert env.state["reward"] == 1.5
    assert env.state["metrics"]["game_reward"] == 1.5
    assert [step["extras"]["game_info"]["count"] for step in env.state["trajectory"]] == [1, 2, 3]
    assert [message.content for message in env.state["completion"]] == ["up", "1", "up", "2", "up", "3"]


def test_game_options_reach_the_game_and_other_tasks_are_refused() -> None:
    env = Counting(blocking=False)
    env.reset(options={"game_options": {"count": 2}})
    assert env.step("up").terminated
    with pytest.raises(ConfigurationError, match="no reset option 'task'"):
        env.reset(options={"task": {"question": "?"}})


def test_a_rollout_asks_the_model_once_a_move_and_closes_its_game() -> None:
    env = Counting(blocking=False)
    client = ScriptedClient(["up", "down", "up", "up"])
    state = asyncio.run(_rollout(env, client))
    assert client.calls == 4
    assert state["reward"] == 1.5
    assert state["stop_condition"] == "game_over"
    assert env.games[0].closed == 1


def test_a_game_keeps_every_promise() -> None:
    broken = [check for check in check_environment(lambda: Counting(blocking=False)) if not check.passed]
    assert broken == []


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: None, "make_move must be a plain method that returns a Turn, got NoneType"),
        (lambda: ([], 1.0, False, False, {}), "returns a Turn, got tuple"),
        (lambda: Turn(["text"]), r"Turn\.messages\[0\]: expected a chat message .*, got str: 'text'"),  # type: ignore[list-item]
        (lambda: Turn(["text"], 1.0, terminated=True), r"Turn\.messages\[0\]"),  # type: ignore[list-item]
        (lambda: Turn([], np.array([1.0])), r"Turn\.reward must be a number, got array\(\[1\.\]\)"),  # type: ignore[arg-type]
        (lambda: Turn([], 10**400), r"Turn\.reward must be a number, got 1000"),
        (lambda: Turn([], None), r"Turn\.reward must be a number, got None"),  # type: ignore[arg-type]
    ],
)
async def test_what_an_author_returns_by_mistake_is_raised_and_no_error_of_the_episode(answer: Any, message: str, blocking: bool) -> None:
    env = Answering(answer, blocking=blocking)
    await env.areset(seed=0)
    with pytest.raises(TypeError, match=message):
        await env.astep("up")
    await env.aclose()
