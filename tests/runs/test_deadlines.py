"""`timeout_seconds` of an environment bounds waiting for whoever answers, in `evaluate` as in `generate`; nothing else is taken for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf
from tests import environments
from tests.models import Mute
from vfgym import ModelAgent, Rubric, aevaluate, evaluate
from vfgym.errors import Error
from vfgym.messages import Message
from vfgym.state import State
from vfgym.testing import ScriptedClient

LIMIT = 1.0
"""Seconds that an episode may take: plenty for one that does not hang, on a busy machine too."""
PATIENCE = 60.0
"""Seconds after which a test fails instead of hanging."""
ROWS = [{"question": f"topic {index}"} for index in range(3)]
TIMED_OUT = ("timeout_reached", None)


class CountedTalk(environments.Talk):
    """Scores the number of answers."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, "max_turns": 2, "rubric": Rubric(self.length), **kwargs})

    def length(self, state: State) -> float:
        return float(len(state["trajectory"]))


class OwnLoop(CountedTalk):
    """Owns its loop, and asks twice."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await self.init_state(input, client, model, sampling_args)
        for _ in range(2):
            await self.get_model_response(state, state["prompt"])
        return state


class Retold(CountedTalk):
    """Does something after the library's loop."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await super().rollout(input, client, model, sampling_args)
        state["is_summarised"] = True
        return state


def hanging_at(second: bool) -> Callable[..., Any]:
    """Return an agent that never answers in the episode of example 1, at its first or second turn."""

    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        if info["example_id"] == 1 and ("yes" in [message["content"] for message in observation]) == second:
            await asyncio.sleep(PATIENCE)
            raise AssertionError("nobody ended the wait")
        return "yes"

    return agent


def ends_of(rows: list[Any]) -> list[tuple[str, str | None]]:
    return [(row["stop_condition"], row["error"] and row["error"]["error"]) for row in rows]


@pytest.mark.parametrize("second", [False, True])
def test_an_agent_that_does_not_answer_in_time_truncates_its_episode_only(second: bool) -> None:
    rows = evaluate(CountedTalk(timeout_seconds=LIMIT), hanging_at(second), state_columns=["timed_out"], progress=False)["outputs"]
    done = ("max_turns_reached", None)
    assert ends_of(rows) == [done, TIMED_OUT, done]
    assert [row["timed_out"] for row in rows] == [None, True, None]
    assert [row["reward"] for row in rows] == [2.0, float(second), 2.0]


@pytest.mark.parametrize("kind", [OwnLoop, Retold])
def test_an_agent_that_does_not_answer_in_time_truncates_an_own_loop_too(kind: type[CountedTalk]) -> None:
    results = evaluate(kind(timeout_seconds=LIMIT), hanging_at(False), state_columns=["timed_out", "is_summarised"], progress=False)
    rows = results["outputs"]
    assert ends_of(rows)[1] == TIMED_OUT
    assert [row["timed_out"] for row in rows] == [None, True, None]
    assert rows[1]["is_summarised"] is (True if kind is Retold else None)


async def test_a_model_that_does_not_answer_ends_an_episode_alike_in_both_runs() -> None:
    class Both(CountedTalk, vf.MultiTurnEnv):  # type: ignore[misc]
        pass

    evaluated, generated = Mute(), Mute()
    results = await aevaluate(Both(timeout_seconds=LIMIT), ModelAgent(evaluated, "m"), state_columns=["timed_out"], progress=False)
    other = await Both(timeout_seconds=LIMIT).generate(ROWS, generated, "m", state_columns=["timed_out"])
    for rows in (results["outputs"], other["outputs"]):
        assert [(row["stop_condition"], row["error"], row["timed_out"], row["reward"]) for row in rows] == [
            ("timeout_reached", None, True, 0.0)
        ] * 3
    assert (evaluated.cancelled, generated.cancelled) == (3, 3)


# What is not the deadline


class TimeoutOfTheirs(Error, TimeoutError):
    """An `Error` that says of something that it took too long."""


@pytest.mark.parametrize("error", [TimeoutError("the database"), TimeoutOfTheirs("the database")])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", [CountedTalk, OwnLoop])
def test_a_timeout_error_of_an_agent_is_its_error(error: Exception, is_async: bool, kind: type[CountedTalk]) -> None:
    def agent(observation: list[Message], info: dict[str, Any]) -> str:
        raise error

    async def async_agent(observation: list[Message], info: dict[str, Any]) -> str:
        raise error

    env = kind(timeout_seconds=PATIENCE)
    rows = evaluate(env, async_agent if is_async else agent, state_columns=["timed_out"], progress=False)["outputs"]
    assert ends_of(rows) == [("has_error", type(error).__name__)] * 3
    assert [row["timed_out"] for row in rows] == [None] * 3


async def late(*_: Any) -> Any:
    await asyncio.sleep(0)
    raise TimeoutError("the database")


@pytest.mark.parametrize("hook", ["setup_state", "env_response", "get_model_response"])
async def test_a_timeout_error_of_a_hook_is_its_error(hook: str) -> None:
    class Hasty(vf.MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return [{"role": "user", "content": "go on"}]

    async def raising(self: Any, *args: Any, **kwargs: Any) -> Any:
        await late()

    setattr(Hasty, hook, raising)

    made = Hasty(dataset=ROWS, max_turns=2, timeout_seconds=PATIENCE)
    rows = (await made.generate(ROWS, ScriptedClient(["yes"] * 9), "m", state_columns=["timed_out"]))["outputs"]
    assert [(row["error"]["error"], row["timed_out"]) for row in rows] == [("TimeoutError", None)] * 3
    if hook != "get_model_response":
        rows = (await aevaluate(made, lambda *_: "yes", state_columns=["timed_out"], progress=False))["outputs"]
        assert [(row["error"]["error"], row["timed_out"]) for row in rows] == [("TimeoutError", None)] * 3


def test_a_plain_agent_that_answers_too_late_ends_its_episode_by_the_deadline() -> None:
    """Nothing can break it off, so its answer comes, and is not played."""

    def agent(observation: list[Message], info: dict[str, Any]) -> str:
        time.sleep(2 * LIMIT if info["example_id"] == 1 else 0)
        return "yes"

    rows = evaluate(CountedTalk(timeout_seconds=LIMIT), agent, max_concurrent=1, progress=False)["outputs"]
    assert ends_of(rows)[1] == TIMED_OUT
