"""Evaluation: every rollout is played once, accounted for, reproducible, and nothing that was finished is lost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import openai
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit, TransformAction, TransformReward

from tests import environments
from tests.interruptions import ctrl_c
from vfgym import (
    ClientConfig,
    EnvGroup,
    ModelAgent,
    NewMessages,
    ProceduralTasks,
    Response,
    Rubric,
    SingleTurnEnv,
    ToolEnv,
    Usage,
    blocking,
    cleanup,
    teardown,
    to_chat,
)
from vfgym.agents import ScriptedAgent
from vfgym.aio.background import background_loop, run_to_end
from vfgym.errors import ConfigurationError, InfraError, ModelError, OverlongPromptError, WouldDeadlock
from vfgym.messages import AssistantMessage, Message
from vfgym.model_server import Faults, ModelRequest, ModelServer, RequestRefused
from vfgym.results import GenerateOutputs, ResultsError, RolloutOutput, load_results
from vfgym.runs import Progress, aevaluate
from vfgym.runs import evaluate as shown_evaluate
from vfgym.runs.replicas import replicate, why_not_replicable
from vfgym.state import State

ENV_ID = "evaluation-tests/Sums-v0"
TOGETHER_SECONDS = 240.0
"""How long episodes that must run together wait for each other, before the test fails instead of hanging."""


def evaluate(*args: Any, **kwargs: Any) -> GenerateOutputs:
    return shown_evaluate(*args, **{"progress": False, **kwargs})


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


class Sums(SingleTurnEnv):
    """Asks for sums, and counts what happens to it."""

    def __init__(self, size: int = 12, **kwargs: Any) -> None:
        rows = [{"question": f"{i} + 1?", "answer": str(i + 1)} for i in range(size)]
        super().__init__(**{"dataset": rows, "rubric": Rubric(exact), **kwargs})
        self.teardowns = 0

    @teardown
    def count(self) -> None:
        self.teardowns += 1


class Topics(environments.RandomTalk):
    """Talks on until its limit, and scores the number of answers."""

    def __init__(self, size: int = 6, **kwargs: Any) -> None:
        rows = [{"question": f"topic {i}"} for i in range(size)]
        super().__init__(**{"dataset": rows, "max_turns": 4, "rubric": Rubric(self.length), **kwargs})

    def length(self, state: State) -> float:
        return float(len(state["trajectory"]))


def say(observation: list[Message], info: dict[str, Any]) -> str:
    return "yes"


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    gymnasium.register(ENV_ID, entry_point=Sums)
    yield
    del gymnasium.registry[ENV_ID]


def keys_of(results: GenerateOutputs) -> list[tuple[int, int]]:
    return [(row["example_id"], row["rollout"]) for row in results["outputs"]]


def without_times(results: GenerateOutputs) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "timing"} for row in results["outputs"]]


# What is played


def test_the_oracle_is_always_right_and_every_example_is_played_once() -> None:
    results = evaluate(Sums(), "oracle")
    assert keys_of(results) == [(i, 0) for i in range(12)]
    assert {row["reward"] for row in results["outputs"]} == {1.0}
    metadata = results["metadata"]
    assert (metadata["avg_reward"], metadata["avg_error"], metadata["model"], metadata["num_examples"]) == (1.0, 0.0, "oracle", 12)


@pytest.mark.parametrize("max_concurrent", [1, 5, 64, -1])
def test_examples_and_rollouts_are_counted_whatever_runs_at_once(max_concurrent: int) -> None:
    results = evaluate(Sums(), say, num_examples=3, rollouts_per_example=2, max_concurrent=max_concurrent)
    assert keys_of(results) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert results["metadata"]["pass_at_k"] == {"1": 0.0, "2": 0.0}


def test_the_evaluation_tasks_are_played_where_there_are_some() -> None:
    env = Sums(eval_dataset=[{"question": "1 + 1?", "answer": "2", "example_id": 40}])
    assert [(row["example_id"], row["answer"]) for row in evaluate(env, say)["outputs"]] == [(40, "2")]


def test_more_examples_than_there_are_is_all_of_them_and_said(caplog: pytest.LogCaptureFixture) -> None:
    assert len(evaluate(Sums(), say, num_examples=50)["outputs"]) == 12
    assert "num_examples is 50, and there are 12 examples" in caplog.text


def test_an_endless_source_asks_for_a_number() -> None:
    env = Sums(dataset=ProceduralTasks(lambda i: {"question": f"{i}?", "answer": str(i)}))
    with pytest.raises(ConfigurationError, match="say how many to play with num_examples"):
        evaluate(env, "oracle")
    assert evaluate(env, "oracle", num_examples=7)["metadata"]["avg_reward"] == 1.0


def test_a_wrapped_game_is_played_by_its_seeds() -> None:
    results = evaluate(to_chat("FrozenLake-v1"), "random", num_examples=20, rollouts_per_example=2)
    assert len(results["outputs"]) == 40
    assert results["metadata"]["avg_error"] == 0.0
    assert {row["stop_condition"] for row in results["outputs"]} == {"game_over"}


def test_an_answer_may_be_text_a_message_or_a_response_and_be_awaited() -> None:
    async def respond(observation: list[Message], info: dict[str, Any]) -> Response:
        await asyncio.sleep(0)
        return Response("r", 0, "m", Usage(4, 0, 2, 6), AssistantMessage("1"))

    agents = [lambda o, i: "1", lambda o, i: {"role": "assistant", "content": "1"}, lambda o, i: AssistantMessage("1"), respond]
    for agent in agents:
        assert evaluate(Sums(), agent, num_examples=1)["metadata"]["avg_reward"] == 1.0
    assert evaluate(Sums(), respond)["metadata"]["usage"] == {
        "input_tokens": 4,
        "output_tokens": 2,
        "final_input_tokens": 4,
        "final_output_tokens": 2,
    }


def test_tools_are_called() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    def call(observation: list[Message], info: dict[str, Any]) -> Any:
        if observation[-1]["role"] == "tool":
            return observation[-1].content
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "name": "add", "arguments": '{"a": 2, "b": 1}'}]}

    env = ToolEnv(tools=[add], dataset=[{"question": "2 + 1?", "answer": "3"}] * 5, rubric=Rubric(exact))
    results = evaluate(env, call)
    assert results["metadata"]["avg_reward"] == 1.0
    assert results["metadata"]["avg_metrics"]["add_calls"] == 1.0
    assert [tool["name"] for tool in results["metadata"]["tools"] or []] == ["add"]


# Kinds of environments


def test_an_id_a_spec_and_a_function_give_the_same_rows() -> None:
    ids = [ENV_ID, gymnasium.spec(ENV_ID), lambda size=12: Sums(size), Sums]
    for env in ids:
        results = evaluate(env, say, env_args={"size": 4})
        assert [row["answer"] for row in results["outputs"]] == ["1", "2", "3", "4"]
        assert results["metadata"]["env_args"] == {"size": 4}
    assert evaluate(ENV_ID, say)["metadata"]["env_id"] == ENV_ID


def test_what_was_made_is_closed_and_what_was_given_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Sums] = []

    def make() -> Sums:
        made.append(Sums())
        return made[-1]

    evaluate(make, say, max_concurrent=3)
    assert [env.teardowns for env in made] == [1, 1, 1]
    mine = Sums()
    mine.reset(seed=0)
    episode = mine.state
    evaluate(mine, say)
    evaluate(TimeLimit(mine, 3), say)
    assert mine.teardowns == 0
    assert mine.state is episode, "the environment that was given is not stepped"
    mine.close()


def test_wrappers_are_rebuilt_around_forks() -> None:
    env = NewMessages(RecordEpisodeStatistics(TimeLimit(TransformReward(Topics(), lambda reward: 10 * reward), max_episode_steps=9)))
    copy = replicate(env)
    kinds = []
    while isinstance(copy, gymnasium.Wrapper):
        kinds.append(type(copy))
        copy = copy.env
    assert kinds == [NewMessages, RecordEpisodeStatistics, TimeLimit, TransformReward]
    assert copy is not env.unwrapped
    assert copy.unwrapped.definition is env.unwrapped
    results = evaluate(env, say)
    assert {(row["reward"], row["return"]) for row in results["outputs"]} == {(4.0, 40.0)}
    assert results["metadata"]["avg_return"] == 40.0


class Louder(gymnasium.RewardWrapper[Any, Any]):
    """A wrapper without arguments of its own, as beginners write it."""

    def reward(self, reward: Any) -> float:
        return float(reward) + 100.0


class Forgetful(gymnasium.RewardWrapper[Any, Any]):
    """A wrapper that does not record its arguments."""

    def __init__(self, env: gymnasium.Env[Any, Any], bonus: float) -> None:
        super().__init__(env)
        self.bonus = bonus

    def reward(self, reward: Any) -> float:
        return float(reward) + self.bonus


class Scaled(TransformReward[Any, Any]):
    """A stock wrapper with another constructor: what is recorded are the arguments of its base class."""

    def __init__(self, env: gymnasium.Env[Any, Any], factor: float) -> None:
        super().__init__(env, lambda reward: factor * reward)


def test_a_wrapper_without_arguments_needs_no_record() -> None:
    assert why_not_replicable(Louder(Sums())) is None
    assert evaluate(Louder(Sums()), "oracle")["outputs"][0]["return"] == 101.0


@pytest.mark.parametrize(("wrap", "arguments"), [(Forgetful, {"bonus": 5.0}), (Scaled, {"factor": 6.0})])
def test_a_wrapper_that_cannot_be_rebuilt_plays_one_episode_at_a_time(
    wrap: Any, arguments: dict[str, float], caplog: pytest.LogCaptureFixture
) -> None:
    class OneAtATime(Sums):
        playing = 0

        async def setup_state(self, state: State) -> None:  # type: ignore[override]
            self.playing += 1
            await asyncio.sleep(0)
            assert self.playing == 1

        @cleanup
        def leave(self, state: State) -> None:
            self.playing -= 1

    inner = OneAtATime()
    results = evaluate(wrap(inner, **arguments), "oracle")
    assert {(row["error"], row["return"]) for row in results["outputs"]} == {(None, 6.0)}
    assert len(results["outputs"]) == 12
    assert f"episodes are played one at a time: the wrapper {wrap.__name__}" in caplog.text
    assert inner.teardowns == 0
    results = evaluate(lambda: wrap(Sums(), **arguments), "oracle")
    assert {row["return"] for row in results["outputs"]} == {6.0}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPole-v1", "is not a chat environment"),
        ("evaluation-tests/Sum-v0", "Did you mean"),
        ("evaluation-test/Sums-v0", "Did you mean: `evaluation-tests`"),
        ("evaluation-tests-Sums-v0", "Did you mean `evaluation-tests/Sums-v0`"),
        (lambda: 7, "returned int"),
        (7, "got int"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(env: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evaluate(env, say)


def test_arguments_that_an_environment_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no_such_argument"):
        evaluate(ENV_ID, say, env_args={"no_such_argument": 1})


@pytest.mark.parametrize("env", [Sums(), TimeLimit(Sums(), 3)])
def test_arguments_for_an_environment_that_is_made_already_are_refused(env: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"env_args \(size\) are for making an environment"):
        evaluate(env, say, env_args={"size": 3})


def test_arguments_that_a_constructor_does_not_take_are_told_in_its_own_words() -> None:
    class Strict(Sums):
        def __init__(self, size: int = 2) -> None:
            super().__init__(size)

    for entry_point, message in ((Strict, "unexpected keyword argument 'depth'"), (Sums, "Sums has no argument 'depth'")):
        with pytest.raises(ConfigurationError, match=message) as caught:
            evaluate(EnvSpec("Strict-v0", entry_point=entry_point), say, env_args={"depth": 1})
        assert "environment creator" not in str(caught.value)


def test_an_error_inside_a_constructor_is_the_authors_own() -> None:
    class Faulty(Sums):
        def __init__(self) -> None:
            super().__init__(size="twelve")  # type: ignore[arg-type]

    with pytest.raises(TypeError) as caught:
        evaluate(EnvSpec("Faulty-v0", entry_point=Faulty), say)
    assert str(caught.value) == "'str' object cannot be interpreted as an integer"
    assert [frame.name for frame in caught.traceback][-2:] == ["__init__", "__init__"]


def test_an_id_may_name_the_module_that_registers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [entry for entry in sys.path if entry])
    monkeypatch.setattr("gymnasium.envs.registration.registry", gymnasium.registry.copy())
    monkeypatch.setattr("gymnasium.registry", gymnasium.envs.registration.registry)
    (tmp_path / "sums_of_mine.py").write_text(
        "import gymnasium, vfgym\n"
        "def make():\n"
        "    return vfgym.SingleTurnEnv([{'question': '1 + 1?', 'answer': '2'}])\n"
        "gymnasium.register('Mine-v0', make)\n"
    )
    assert evaluate("sums_of_mine:Mine-v0", "oracle")["outputs"][0]["completion"][0]["content"] == "2"
    with pytest.raises(ConfigurationError, match="there is no module 'sums_of_nobody'"):
        evaluate("sums_of_nobody:Mine-v0", "oracle")
    with pytest.raises(ConfigurationError, match="Did you mean"):
        evaluate("sums_of_mine:Mien-v0", "oracle")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_examples": 0}, "num_examples must be a positive integer, or -1"),
        ({"rollouts_per_example": -1}, "rollouts_per_example must be a positive integer, got -1"),
        ({"max_concurrent": 0}, "max_concurrent must be a positive integer"),
        ({"num_examples": "3"}, "num_examples must be a positive integer, or -1 for no limit, got '3'"),
        ({"rollouts_per_example": 1.5}, "rollouts_per_example must be a positive integer, got 1.5"),
        ({"seed": 0.5}, "seed must be an integer from 0, got 0.5"),
        ({"state_columns": "trajectory"}, r"state_columns must be a list of names, such as \['trajectory'\], got 'trajectory'"),
        ({"seed": -3}, "seed must be an integer from 0, got -3"),
        ({"seed": True}, "seed must be an integer from 0, got True"),
        ({"num_examples": True}, "num_examples must be a positive integer, or -1 for no limit, got True"),
        ({"rollouts_per_example": True}, "rollouts_per_example must be a positive integer, got True"),
        ({"max_concurrent": -2}, "max_concurrent must be a positive integer, or -1 for no limit, got -2"),
        ({"tags": [""]}, r"tags must be a list of names, such as \['baseline'\], got \[''\]"),
        ({"state_columns": None}, r"state_columns must be a list of names, such as \['trajectory'\], got None"),
        ({"state_columns": (column for column in ["trajectory", 1])}, r"state_columns must be a list of names, .* got \['trajectory', 1\]"),
    ],
)
def test_arguments_that_cannot_work_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evaluate(Sums(), say, **arguments)


def test_numpys_integers_are_integers(tmp_path: Path) -> None:
    names = ("num_examples", "rollouts_per_example", "max_concurrent", "seed")
    metadata = evaluate(Sums(), say, **dict.fromkeys(names, np.int64(2)), results_path=tmp_path / "run")["metadata"]
    assert [(type(metadata[name]), metadata[name]) for name in names] == [(int, 2)] * 4
    assert len(load_results(tmp_path / "run")["outputs"]) == 4


def test_state_columns_may_be_anything_that_can_be_gone_over() -> None:
    results = evaluate(Sums(), say, num_examples=1, state_columns=(name for name in ["trajectory", "trajectory_id"]))
    assert results["metadata"]["state_columns"] == ["trajectory", "trajectory_id"]
    assert results["outputs"][0]["trajectory"][0]["completion"]


def test_tasks_that_cannot_be_told_apart_are_refused() -> None:
    rows = [{"question": "?", "answer": "", "example_id": 3}] * 2
    with pytest.raises(ConfigurationError, match="the same example_id"):
        evaluate(Sums(dataset=rows), say)
    with pytest.raises(ConfigurationError, match="its dataset is empty"):
        evaluate(Sums(dataset=[]), say)


# Seeds


def test_a_seed_replays_whatever_runs_at_once_and_however_much_is_played() -> None:
    env = Topics()
    whole = without_times(evaluate(env, "random", rollouts_per_example=3, seed=5, max_concurrent=1))
    assert without_times(evaluate(env, "random", rollouts_per_example=3, seed=5, max_concurrent=7)) == whole
    assert without_times(evaluate(lambda: Topics(), "random", rollouts_per_example=3, seed=5)) == whole
    fewer = without_times(evaluate(env, "random", num_examples=2, rollouts_per_example=2, seed=5))
    assert fewer == [row for row in whole if row["example_id"] < 2 and row["rollout"] < 2]
    assert without_times(evaluate(env, "random", rollouts_per_example=3, seed=6)) != whole


def test_seeds_differ_over_runs_examples_and_rollouts() -> None:
    """Neighbouring seeds of runs share none either: a second run with another seed is a second sample."""
    seeds: list[int] = []

    class Seeded(Sums):
        def choose_task(self, seed: int | None, options: Any) -> Any:
            assert seed is not None
            seeds.append(seed)
            return super().choose_task(seed, options)

    env = Seeded(size=4)
    for seed in range(3):
        evaluate(env, say, rollouts_per_example=3, seed=seed)
    assert len(set(seeds)) == len(seeds) == 3 * 4 * 3


def test_three_rollouts_of_one_example_are_numbered_0_1_2() -> None:
    results = evaluate(Sums(size=1), say, rollouts_per_example=3)
    assert keys_of(results) == [(0, 0), (0, 1), (0, 2)]


def test_episodes_under_a_shared_action_space_replay_too() -> None:
    words = ["a", "b", "c"]
    env = TransformAction(Topics(), lambda number: words[number], gymnasium.spaces.Discrete(3))
    alone = without_times(evaluate(env, "random", max_concurrent=1))
    assert without_times(evaluate(env, "random", max_concurrent=6)) == alone


# Many at once


class Meeting(Topics):
    """No episode goes on before as many as expected are in it."""

    def __init__(self, expected: int, **kwargs: Any) -> None:
        super().__init__(size=expected, max_turns=3, **kwargs)
        self.expected = expected
        self.arrived = 0
        self.all_here = asyncio.Event()

    async def env_response(self, messages: list[Message], state: State) -> Any:
        self.arrived += 1
        if self.arrived == self.expected:
            self.all_here.set()
        await asyncio.wait_for(self.all_here.wait(), TOGETHER_SECONDS)
        return [{"role": "user", "content": "go on"}]


def test_five_hundred_episodes_are_in_flight_at_once_through_stock_wrappers() -> None:
    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return "yes"

    env = RecordEpisodeStatistics(TimeLimit(Meeting(500), max_episode_steps=2))
    results = evaluate(env, agent, max_concurrent=500)
    assert keys_of(results) == [(i, 0) for i in range(500)]
    assert {row["stop_condition"] for row in results["outputs"]} == {"truncated"}
    assert {row["reward"] for row in results["outputs"]} == {2.0}
    assert env.unwrapped.cleaned == 500


def test_a_blocking_agent_plays_several_episodes_at_once() -> None:
    together = threading.Barrier(4, timeout=TOGETHER_SECONDS)

    @blocking
    def agent(observation: list[Message], info: dict[str, Any]) -> str:
        together.wait()
        return "yes"

    class Player:
        @blocking
        def __call__(self, observation: list[Message], info: dict[str, Any]) -> str:
            return agent(observation, info)

    for player in (agent, Player()):
        results = evaluate(Sums(size=4), player, max_concurrent=4)
        assert {row["error"] for row in results["outputs"]} == {None}


def test_an_agent_that_holds_up_the_event_loop_is_named(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(seconds)))

    def slow_thinker(observation: list[Message], info: dict[str, Any]) -> str:
        return "yes"

    evaluate(Sums(size=2), slow_thinker)
    assert "slow_thinker held up the event loop" in caplog.text


def test_works_inside_a_running_loop_in_threads_and_inside_another_run() -> None:
    async def notebook_cell() -> GenerateOutputs:
        return evaluate(Meeting(3), say)

    async def direct() -> GenerateOutputs:
        return await aevaluate(Meeting(3), say, progress=False)

    def nested(observation: list[Message], info: dict[str, Any]) -> str:
        return str(evaluate(Meeting(3), say)["metadata"]["avg_reward"])

    assert asyncio.run(notebook_cell())["metadata"]["avg_reward"] == 3.0
    assert asyncio.run(direct())["metadata"]["avg_reward"] == 3.0
    assert evaluate(Sums(size=2), nested)["outputs"][0]["completion"][0].content == "3.0"
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(evaluate(Meeting(3), say)["metadata"]["avg_reward"])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3.0] * 3


def test_waiting_for_the_loop_it_runs_on_is_refused() -> None:
    async def on_the_background_loop() -> GenerateOutputs:
        return evaluate(Sums(), say)

    with pytest.raises(WouldDeadlock):
        asyncio.run_coroutine_threadsafe(on_the_background_loop(), background_loop()).result()


# Endings and failures


def test_a_wrapper_that_ends_the_episode_early_has_it_scored() -> None:
    env = Topics(size=2)
    results = evaluate(TimeLimit(env, max_episode_steps=2), say)
    for row in results["outputs"]:
        assert (row["reward"], row["return"], row["stop_condition"]) == (2.0, 0.0, "truncated")
        assert len(row["completion"]) == 3
    assert env.cleaned == 2


@pytest.mark.parametrize(
    ("error", "stop_condition", "recorded"),
    [
        (InfraError("gone"), "has_error", "InfraError"),
        (OverlongPromptError("long"), "prompt_too_long", None),
        (TimeoutError(), "has_error", "TimeoutError"),
        (KeyError("bug"), "has_error", "KeyError"),
    ],
)
def test_an_agent_that_fails_ends_its_episode_only(error: Exception, stop_condition: str, recorded: str | None) -> None:
    def agent(observation: list[Message], info: dict[str, Any]) -> str:
        if info["example_id"] == 1 and len(observation) > 1:
            raise error
        return "yes"

    env = Topics(size=3)
    rows = evaluate(env, agent)["outputs"]
    assert [row["stop_condition"] for row in rows] == ["max_turns_reached", stop_condition, "max_turns_reached"]
    assert (rows[1]["error"] or {"error": None})["error"] == recorded
    assert len(rows[1]["completion"]) == 1
    assert (rows[1]["reward"], rows[1]["metrics"]["num_turns"]) == (1.0, 1.0)
    assert env.cleaned == 3


def test_an_answer_that_is_none_is_the_error_of_its_rollout() -> None:
    answers: dict[int, Any] = {0: "1", 1: 7, 2: {"role": "user", "content": "2"}}
    rows = evaluate(Sums(size=3), ScriptedAgent({i: [answer] for i, answer in answers.items()}))["outputs"]
    assert [row["reward"] for row in rows] == [1.0, 0.0, 0.0]
    assert [row["error"] and row["error"]["error"] for row in rows] == [None, "InvalidAction", "InvalidAction"]


def test_an_environment_that_breaks_is_recorded_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Fragile(Topics):
        def env_response(self, messages: list[Message], state: State) -> Any:
            raise RuntimeError("hook broke")

    rows = evaluate(Fragile(size=3), say)["outputs"]
    assert [row["error"]["error_chain_repr"] for row in rows] == ["RuntimeError('hook broke')"] * 3
    assert [(row["reward"], len(row["completion"])) for row in rows] == [(0.0, 1)] * 3
    assert [record.exc_info is not None for record in caplog.records] == [True]


class Breaking(gymnasium.Env[Any, Any]):
    action_space, observation_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> Any:
        raise KeyError("the game's own line")


@blocking
def breaking_agent(observation: list[Message], info: dict[str, Any]) -> str:
    raise KeyError("the agent's own line")


@pytest.mark.parametrize("is_blocking", [False, True])
def test_an_error_of_a_game_shows_the_authors_line_in_the_log_and_where_it_is_raised(
    is_blocking: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def make() -> Any:
        return TimeLimit(to_chat(Breaking, blocking=is_blocking), 5)

    evaluate(make(), "random", num_examples=1)
    assert f'File "{__file__}", line' in caplog.text
    assert 'raise KeyError("the game\'s own line")' in caplog.text
    with pytest.raises(KeyError) as caught:
        evaluate(make(), "random", num_examples=1, strict=True)
    assert caught.traceback[-1].path == Path(__file__)
    evaluate(Sums(size=1), breaking_agent)
    assert 'raise KeyError("the agent\'s own line")' in caplog.text


def test_a_task_that_cannot_begin_is_recorded() -> None:
    rows = evaluate(Sums(dataset=[{"question": "0 + 1?", "answer": "1"}, {"qestion": "?"}]), "oracle")["outputs"]
    assert [row["reward"] for row in rows] == [1.0, 0.0]
    assert rows[1]["example_id"] == 1
    assert "needs a 'prompt'" in str(rows[1]["error"])


def test_strict_raises_the_first_unexpected_exception_and_keeps_what_was_finished(tmp_path: Path) -> None:
    def agent(observation: list[Message], info: dict[str, Any]) -> str:
        if info["example_id"] == 2:
            raise KeyError("bug")
        if info["example_id"] == 1:
            raise InfraError("an error of the episode, which is not a bug")
        return "1"

    with pytest.raises(KeyError, match="bug"):
        evaluate(Sums(), agent, strict=True, max_concurrent=1, results_path=tmp_path / "run")
    results = load_results(tmp_path / "run")
    assert keys_of(results) == [(0, 0), (1, 0)]
    metadata = results["metadata"]
    assert (metadata["avg_reward"], metadata["avg_reward_finished"], metadata["avg_error"]) == (None, 1.0, 0.5)


def test_an_agent_that_is_set_up_wrong_stops_the_run() -> None:
    with pytest.raises(ConfigurationError, match="Topics knows no right answer"):
        evaluate(Topics(), "oracle")
    with pytest.raises(ConfigurationError, match="no agent 'orcle'"):
        evaluate(Topics(), "orcle")


def test_a_script_that_is_used_up_is_an_error_of_its_rollout(caplog: pytest.LogCaptureFixture) -> None:
    rows = evaluate(Topics(size=3), ScriptedAgent(["once"]))["outputs"]
    assert [row["error"]["error"] for row in rows] == [ModelError.__name__] * 3
    (record,) = caplog.records
    assert "asks for one more" in record.getMessage()
    assert record.exc_info is None, "its words say what is wrong"


class Holding(Topics):
    """Keeps something in its state that is not data, at each turn."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        state["trajectory"][-1]["extras"]["held"] = {"names": ["a"], "lock": threading.Lock()}
        state["held"] = {"turns": len(state["trajectory"]), "lock": threading.Lock()}
        return super().env_response(messages, state)


def test_what_rows_leave_out_is_named_once_a_run(caplog: pytest.LogCaptureFixture) -> None:
    rows = evaluate(Holding(size=2), say, rollouts_per_example=2, state_columns=["trajectory", "held"], max_concurrent=1)["outputs"]
    assert len(rows) == 4
    for row in rows:
        assert row["trajectory"][0]["extras"]["held"] == {"names": ["a"], "lock": "<not kept: lock has no form in JSON>"}
        assert row["held"]["turns"] >= 1, "the rest of the column is kept"
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "the row of example 0, rollout 0 leaves out trajectory[0].extras.held.lock: lock has no form in JSON;"
        " held.lock: lock has no form in JSON ("
    )


class HoldingMore(Topics):
    """Keeps things that are not data under a new key at each turn."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        state["held"] = {f"lock {state['trajectory_id']}": threading.Lock()}
        return super().env_response(messages, state)


def test_what_is_left_out_under_ever_new_keys_is_named_a_few_times_only(caplog: pytest.LogCaptureFixture) -> None:
    rows = evaluate(HoldingMore(size=50), say, state_columns=["held"])["outputs"]
    assert len({key for row in rows for key in row["held"]}) == 50
    *named, last = caplog.messages
    assert len(named) == 20
    assert all("leaves out held.lock " in message for message in named)
    assert "no further places are reported" in last


def test_what_rows_hold_as_text_on_disk_is_named_once_a_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tasks = [{"question": "0 + 1?", "answer": "1", "info": {"day": [1, object()]}} for _ in range(3)]
    evaluate(Sums(dataset=tasks), say, results_path=tmp_path / "run")
    (record,) = caplog.records
    assert "holds as text only info.day[1]: object has no form in JSON" in record.getMessage()
    assert load_results(tmp_path / "run")["outputs"][2]["info"]["day"][1].startswith("<object object")


# Groups


def longest(completions: list[Any]) -> list[float]:
    lengths = [len(completion[-1].content) for completion in completions]
    return [float(length == max(lengths)) for length in lengths]


def test_group_rewards_are_computed_over_whole_groups() -> None:
    env = Sums(size=5, rubric=Rubric([longest, exact], weights=[1.0, 0.0]))

    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        await asyncio.sleep(0.001 * (info["example_id"] % 3))  # groups end in another order than they began
        return "long" if info["example_id"] % 2 and next(turns) % 2 else "x"

    turns = iter(range(100))
    results = evaluate(env, agent, rollouts_per_example=4, state_columns=["advantage"])
    assert keys_of(results) == [(i, n) for i in range(5) for n in range(4)]
    for row in results["outputs"]:
        group = [other for other in results["outputs"] if other["example_id"] == row["example_id"]]
        lengths = [len(other["completion"][-1].content) for other in group]
        assert row["reward"] == row["longest"] == float(len(row["completion"][-1].content) == max(lengths))
        assert row["advantage"] == pytest.approx(row["reward"] - np.mean([other["reward"] for other in group]))
        assert row["metrics"]["num_turns"] == 1.0
        assert row["timing"]["total"] > 0


def test_a_member_that_broke_has_no_part_in_its_group() -> None:
    class Fragile(Sums):
        def setup_state(self, state: State) -> Any:
            state["number"] = next(numbers)
            if state["number"] == 1:
                raise RuntimeError("broken")

    numbers = iter(range(10))
    sizes: list[int] = []

    def share(completions: list[Any]) -> list[float]:
        sizes.append(len(completions))
        return [1.0 / len(completions)] * len(completions)

    rows = evaluate(Fragile(size=1, rubric=Rubric(share)), say, rollouts_per_example=3, max_concurrent=1)["outputs"]
    assert sizes == [2]
    assert [(row["reward"], row["error"] is None) for row in rows] == [(0.5, True), (0.0, False), (0.5, True)]


def test_a_group_that_cannot_be_scored_is_recorded_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    """For each of its rollouts that was played; one that broke off keeps its own."""

    class Unscorable(Rubric):
        def group_scoring_steps(self, states: list[State]) -> Any:
            raise ZeroDivisionError("a bug of the rubric")

    def ranks(states: list[State]) -> list[float]:
        return [0.0] * len(states)

    def agent(observation: list[Message], info: dict[str, Any]) -> str:
        if not asked:
            asked.append(1)
            raise KeyError("a bug of the agent")
        return "yes"

    asked: list[int] = []
    results = evaluate(Sums(size=2, rubric=Unscorable(ranks)), agent, rollouts_per_example=2, max_concurrent=1)
    assert keys_of(results) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [str(row["error"]).count("a bug of the rubric") > 0 for row in results["outputs"]] == [False, True, True, True]
    assert "a bug of the agent" in str(results["outputs"][0]["error"])
    assert "scoring the rollouts of example 1 failed" in caplog.text
    assert results["metadata"]["avg_error"] == 1.0


def test_an_environment_that_cannot_be_closed_keeps_no_other_open(caplog: pytest.LogCaptureFixture) -> None:
    made: list[Any] = []

    class Stuck(Sums):
        def close_session(self, session: Any) -> None:
            raise OSError("stuck")

        def setup_state(self, state: State) -> Any:
            state.session = "a game"
            return super().setup_state(state)

    def make() -> Sums:
        made.append(Stuck() if len(made) == 1 else Sums())
        return made[-1]

    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return "yes"

    assert len(evaluate(make, agent, max_concurrent=3)["outputs"]) == 12
    assert len(made) == 3
    assert [env.teardowns for env in made] == [1, 1, 1]
    assert "closing" in caplog.text
    assert "stuck" in caplog.text


def test_a_group_whose_first_rollout_cannot_begin_is_scored_by_the_environment_that_played_it() -> None:
    """Not by the first of the joined environments, whose functions would measure other tasks."""

    class Fragile(Sums):
        def setup_state(self, state: State) -> Any:
            if next(numbers) == 0:
                raise RuntimeError("broken")

    def other(completions: list[Any]) -> list[float]:
        return [0.5] * len(completions)

    numbers = iter(range(10))
    joined = EnvGroup([Sums(size=1, rubric=Rubric(other)), Fragile(size=1, rubric=Rubric(longest))], env_names=["first", "second"])
    rows = evaluate(joined, say, rollouts_per_example=3, max_concurrent=1)["outputs"]
    assert [(row["reward"], sorted(row["metrics"])) for row in rows] == [
        *[(0.5, ["num_turns", "other"])] * 3,
        (0.0, []),
        *[(1.0, ["longest", "num_turns"])] * 2,
    ]


def test_an_environment_with_group_rewards_cannot_be_stepped_after_its_evaluation_either() -> None:
    env = Forgetful(Sums(rubric=Rubric(longest)), bonus=0.0)
    evaluate(env, say, rollouts_per_example=2)
    with pytest.raises(ConfigurationError, match="scores whole groups"):
        env.reset()


# Results and progress


def test_results_are_written_in_the_documented_format(tmp_path: Path) -> None:
    results = evaluate(Sums(), "random", results_path=tmp_path / "run", state_columns=["trajectory"], pass_threshold=0.9)
    assert load_results(tmp_path / "run")["outputs"] == [json.loads(json.dumps(row)) for row in results["outputs"]]
    metadata = json.loads((tmp_path / "run" / "metadata.json").read_text())
    assert metadata == json.loads(json.dumps({k: v for k, v in results["metadata"].items() if k not in ("path_to_save", "date")}))
    assert (metadata["env_id"], metadata["model"], metadata["seed"], metadata["pass_threshold"]) == ("Sums", "random", 0, 0.9)
    assert metadata["state_columns"] == ["trajectory"]
    assert {"python", "gymnasium", "numpy"} <= metadata["versions"].keys()
    assert metadata["time_ms"] == metadata["time"] * 1000 > 0
    assert set(metadata["version_info"]) == {"vf_version", "vf_commit", "env_version", "env_commit"}


def test_results_are_saved_below_outputs_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = evaluate(Sums(), say, save_results=True, env_id="me/sums")["metadata"]["path_to_save"]
    assert path is not None
    assert path.parent == Path("outputs/evals/me--sums--agent=say")
    assert len(load_results(path)["outputs"]) == 12
    assert evaluate(Sums(), say)["metadata"]["path_to_save"] is None


def test_a_directory_that_cannot_be_written_stops_before_any_rollout(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    asked: list[str] = []
    with pytest.raises(ResultsError, match="cannot write results"):
        evaluate(Sums(), lambda o, i: asked.append("x") or "x", results_path=tmp_path / "file" / "run")
    assert asked == []


def test_a_disk_that_is_full_stops_the_run_and_hands_on_what_was_finished(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").symlink_to("/dev/full")
    env = Sums()
    with pytest.raises(ResultsError, match="No space left on device") as caught:
        evaluate(lambda: env, "oracle", max_concurrent=1, results_path=tmp_path)
    assert caught.value.outputs is not None
    assert [row["reward"] for row in caught.value.outputs["outputs"]] == [1.0]
    assert env.teardowns == 1, "what was made is closed"


def test_metadata_that_cannot_be_written_at_the_end_hands_on_the_results(tmp_path: Path) -> None:
    def listen(row: RolloutOutput, progress: Progress) -> None:
        if progress.done == progress.total:
            (tmp_path / "metadata.json").unlink()
            (tmp_path / "metadata.json").mkdir()  # a directory where the file should be

    with pytest.raises(ResultsError, match="cannot write results") as caught:
        evaluate(Sums(size=2), "oracle", results_path=tmp_path, on_progress=listen)
    assert caught.value.outputs is not None
    assert caught.value.outputs["metadata"]["avg_reward"] == 1.0


def test_progress_is_told_row_by_row() -> None:
    told: list[tuple[RolloutOutput, int, int, float]] = []

    def listen(row: RolloutOutput, progress: Progress) -> None:
        told.append((row, progress.done, progress.total, progress.avg_reward))

    results = evaluate(Sums(size=4), ScriptedAgent({0: ["1"], 1: ["?"], 2: ["3"], 3: ["?"]}), max_concurrent=1, on_progress=listen)
    assert [entry[1:] for entry in told] == [(1, 4, 1.0), (2, 4, 0.5), (3, 4, 2 / 3), (4, 4, 0.5)]
    assert [entry[0] for entry in told] == results["outputs"]


def test_progress_is_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(Sums(size=4), "oracle", progress=True)
    assert capsys.readouterr().err.startswith("Sums oracle: 4/4 (100%), reward 1.000, 0 failed")
    evaluate(Sums(size=4), "oracle", progress=False)
    assert capsys.readouterr().err == ""


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    evaluate(Sums(size=4), "oracle", progress=True, env_id="{sums}")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "{sums} oracle: reward 1.000, 0 failed" in shown
    assert " 4/4 " in shown


@pytest.mark.parametrize("width", [45, 110])
def test_the_bar_has_all_it_tells_at_any_width(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    evaluate(Sums(size=4), "oracle", progress=True, env_id="an-environment-with-a-name/of-many-words-v0")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert all(len(line) <= width for line in re.split(r"[\r\n]", shown))
    assert "reward 1.000, 0 failed" in " ".join(shown.split())
    assert re.search(r" 4/4 [\d.k]+/s 0:00:0\d 0:00:00", shown)


# Ctrl-C

INTERRUPTED_RUN = """
import asyncio, sys
from vfgym import Rubric, SingleTurnEnv, cleanup, teardown
from vfgym.runs import evaluate

class Slow(SingleTurnEnv):
    @cleanup
    def left(self, state):
        print("cleaned up", flush=True)
    @teardown
    def closed(self):
        print("torn down", flush=True)

def make():
    return Slow([{"question": str(i)} for i in range(1000)], rubric=Rubric(lambda completion: 1.0))

async def agent(observation, info):
    if info["example_id"] >= 20:
        print("waiting", flush=True)
        await asyncio.Event().wait()
    return "yes"

evaluate(make, agent, max_concurrent=2, results_path=sys.argv[1], progress=False)
"""


def test_ctrl_c_closes_what_was_made_and_keeps_what_was_finished(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED_RUN, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        waiting = 0
        while waiting < 2:
            waiting += process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TOGETHER_SECONDS)
    assert "KeyboardInterrupt" in stderr
    assert (stdout.count("cleaned up"), stdout.count("torn down")) == (2, 2)
    results = load_results(tmp_path / "run")
    assert keys_of(results) == [(i, 0) for i in range(20)]
    assert (results["metadata"]["avg_reward"], results["metadata"]["avg_reward_finished"]) == (None, 1.0)
    assert results["metadata"]["num_examples"] == 1000


def test_ctrl_c_in_this_process_waits_for_a_slow_finally(tmp_path: Path) -> None:
    """`KeyboardInterrupt` arrives when all that the run began has ended, so that nothing of it goes on behind the caller's back."""
    ended: list[str] = []

    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        try:
            interrupt()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.3)
            ended.append("agent")
        return "yes"

    class Slow(Topics):
        @cleanup
        async def leave(self, state: State) -> None:
            await asyncio.sleep(0.1)
            ended.append("cleanup")

        @teardown
        async def release(self) -> None:
            await asyncio.sleep(0.1)
            ended.append("teardown")

    with ctrl_c() as interrupt, pytest.raises(KeyboardInterrupt):
        evaluate(lambda: Slow(size=1), agent, results_path=tmp_path)
    assert ended == ["agent", "cleanup", "teardown"]
    assert load_results(tmp_path)["outputs"] == []


async def test_cancelling_does_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    env = Topics(size=3)
    begun = asyncio.Event()

    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        if info["example_id"] == 2:
            begun.set()
            await asyncio.Event().wait()
        return "yes"

    with caplog.at_level(logging.ERROR):
        run = asyncio.create_task(aevaluate(env, agent, max_concurrent=1, results_path=tmp_path, progress=False))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert env.cleaned == 3
    assert keys_of(load_results(tmp_path)) == [(0, 0), (1, 0)]
    assert caplog.records == []


# Models


def right_sum(request: ModelRequest) -> str:
    return str(int(request.messages[-1].content.partition(" ")[0]) + 1)


def model_at(server: ModelServer, sampling_args: dict[str, Any] | None = None, **fields: Any) -> ModelAgent:
    return ModelAgent(ClientConfig(api_base_url=server.openai_url, api_key="k", connect_timeout=30.0, **fields), "m", sampling_args)


@contextlib.asynccontextmanager
async def asked(server: ModelServer, sampling_args: dict[str, Any] | None = None, **fields: Any) -> AsyncIterator[ModelAgent]:
    agent = model_at(server, sampling_args, **fields)
    try:
        yield agent
    finally:
        await agent.close()


async def test_a_model_that_fails_now_and_then_loses_no_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.clients.http.retries._FIRST_PAUSE", 0.01)
    faults = Faults(seed=2, rate_limited=0.05, server_error=0.03, cut_connection=0.03)
    async with ModelServer({"m": right_sum}, faults=faults) as server, asked(server, {"temperature": 0.5}) as agent:
        results = await aevaluate(
            Sums(100), agent, rollouts_per_example=3, max_concurrent=50, results_path=tmp_path, model="m", progress=False
        )
        assert server.num_requests == 300 + sum(server.faults_given.values())
        assert server.faults_given.keys() == {"rate_limited", "server_error", "cut_before_headers", "cut_in_body"}
    assert keys_of(results) == [(i, r) for i in range(100) for r in range(3)]
    assert keys_of(load_results(tmp_path)) == keys_of(results)
    assert {row["reward"] for row in results["outputs"]} == {1.0}
    metadata = results["metadata"]
    assert (metadata["model"], metadata["sampling_args"]) == ("m", {"temperature": 0.5})
    assert (metadata["base_url"], metadata["usage"] is None) == (agent.base_urls, False)


async def test_errors_of_a_model_are_those_of_its_rollouts() -> None:
    faults = {"3 + 1?": "server_error", "5 + 1?": "overlong", "7 + 1?": "malformed_json"}

    def fault_of(request: ModelRequest) -> str | None:
        return faults.get(request.messages[-1].content)

    async with ModelServer({"m": right_sum}, faults=fault_of) as server, asked(server, max_retries=0) as agent:
        results = await aevaluate(Sums(), agent, progress=False)
    rows = results["outputs"]
    assert [row["error"] and row["error"]["error"] for row in rows if row["reward"] == 0.0] == [
        "ModelError",
        None,
        "InvalidModelResponseError",
    ]
    assert [row["stop_condition"] for row in rows if row["reward"] == 0.0] == ["has_error", "prompt_too_long", "has_error"]
    assert [row["example_id"] for row in rows if row["is_truncated"]] == [5]


async def test_a_key_that_is_refused_stops_the_run_and_keeps_what_was_finished(tmp_path: Path) -> None:
    env = Topics(size=50)

    def policy(request: ModelRequest) -> str:
        if request.messages[0].content == "topic 20":
            raise RequestRefused(401, "this key has expired")
        return "yes"

    async with ModelServer({"m": policy}) as server, asked(server) as agent:
        with pytest.raises(openai.AuthenticationError, match="this key has expired") as caught:
            await aevaluate(env, agent, max_concurrent=1, results_path=tmp_path, progress=False)
        assert server.num_requests == 20 * 4 + 1
    assert "refused the API key: the api_key that was given" in caught.value.__notes__[0]
    assert env.cleaned == 21
    assert keys_of(load_results(tmp_path)) == [(i, 0) for i in range(20)]


async def test_a_run_that_waits_for_a_model_is_cancelled_and_resumed(tmp_path: Path) -> None:
    waits = asyncio.Event()

    def hangs(request: ModelRequest) -> str | None:
        if request.number <= 6:
            return None
        waits.set()
        return "hung"

    async with ModelServer({"m": right_sum}, faults=hangs) as server, asked(server) as agent:
        run = asyncio.create_task(aevaluate(Sums(), agent, max_concurrent=2, results_path=tmp_path, progress=False))
        await waits.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        finished = len(load_results(tmp_path)["outputs"])
        assert 5 <= finished <= 6
        server.behaviour.faults = None
        before = server.num_requests
        results = await aevaluate(Sums(), agent, results_path=tmp_path, resume=True, progress=False)
        assert server.num_requests == before + 12 - finished
    assert keys_of(results) == [(i, 0) for i in range(12)]
    assert results["metadata"]["avg_reward"] == 1.0


def test_a_model_plays_a_game_through_stock_wrappers_from_synchronous_code() -> None:
    def make() -> gymnasium.Env[Any, Any]:
        return RecordEpisodeStatistics(TimeLimit(to_chat("FrozenLake-v1", is_slippery=False), max_episode_steps=4))

    with ModelServer({"m": lambda request: "left"}) as server:
        agent = model_at(server)
        results = evaluate(make, agent, num_examples=5)
        run_to_end(agent.close())
        assert server.num_requests == 5 * 4
    assert {row["stop_condition"] for row in results["outputs"]} == {"truncated"}


def test_a_run_that_could_play_nothing_leaves_nothing(tmp_path: Path) -> None:
    env = SingleTurnEnv(dataset=[{"question": "?"}])
    with pytest.raises(ConfigurationError, match="knows no right answer"):
        evaluate(env, "oracle", results_path=tmp_path / "evals" / "run", progress=False)
    assert list(tmp_path.iterdir()) == []
