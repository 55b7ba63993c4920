"""Play that begins inside a rollout (a tool, an agent, a judge, an opponent) has limits of its own; what it spends counts for the run."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from tests.models import calling
from vfgym import AssistantMessage, ModelAgent, MultiTurnEnv, Response, Rubric, SingleTurnEnv, ToolEnv, evaluate
from vfgym.errors import ModelError
from vfgym.messages import Usage
from vfgym.testing import FakeModel, ScriptedClient

INNER_TURNS = 5


class Counting(MultiTurnEnv):
    """Goes on for five turns."""

    def __init__(self) -> None:
        super().__init__(dataset=[{"question": "Count.", "answer": "5"}], rubric=Rubric(lambda: 1.0), max_turns=INNER_TURNS)

    async def env_response(self, messages: Any, state: Any) -> Any:
        """Say that it goes on."""
        return [{"role": "user", "content": "go on"}]


def play_inner() -> tuple[int, str]:
    """Play another environment; return how many turns it had, and how it ended."""
    with Counting() as env:
        env.reset()
        turns = 0
        while True:
            turns += 1
            _, _, terminated, truncated, info = env.step(str(turns))
            if terminated or truncated:
                return turns, info["stop_condition"]


async def play_inner_async(env: Any) -> tuple[int, str]:
    """Do what `play_inner` does, in async code."""
    await env.areset()
    for turn in range(1, 2 * INNER_TURNS):
        _, _, terminated, truncated, info = await env.astep(str(turn))
        if terminated or truncated:
            await env.aclose()
            return turn, info["stop_condition"]
    raise AssertionError("it has no end")


WHOLE = (INNER_TURNS, "max_turns_reached")


def test_a_tool_plays_another_environment() -> None:
    played = []

    def explore() -> str:
        """Explore."""
        played.append(play_inner())
        return "seen"

    env = ToolEnv(tools=[explore], dataset=[{"question": "Go.", "answer": ""}], rubric=Rubric(lambda: 1.0), max_turns=10)
    answers = [calling(("explore", {}))] * 6
    client = ScriptedClient(answers)
    (row,) = evaluate(env, ModelAgent(client, "m"), limits_each={"turns": 3}, progress=False)["outputs"]
    assert played == [WHOLE] * 2  # the last answer is cut off before its tool is called
    assert (row["stop_condition"], row["ending"], row["metrics"]["num_turns"]) == ("limit_reached", "cut", 3.0)


def test_an_agent_looks_ahead_in_another_environment() -> None:
    played = []

    def agent(observation: Any, info: Any) -> str:
        played.append(play_inner())
        return "on"

    (row,) = evaluate(Counting(), agent, limits_each={"turns": 2}, progress=False)["outputs"]
    assert played == [WHOLE] * 2
    assert (row["stop_condition"], row["metrics"]["num_turns"]) == ("limit_reached", 2.0)


@pytest.mark.parametrize("copied", [lambda env: env.branch(), copy.deepcopy])
def test_an_agent_looks_ahead_in_copies_of_the_same_environment(copied: Any) -> None:
    turns = []

    class Ahead:
        def for_episode(self, env: Any) -> Any:
            def answer(observation: Any, info: Any) -> str:
                ahead = copied(env.unwrapped)
                ended = False
                count = 0
                while not ended:
                    _, _, terminated, truncated, info = ahead.step("ahead")
                    count += 1
                    ended = terminated or truncated
                turns.append((count, info["stop_condition"]))
                return "on"

            return answer

    (row,) = evaluate(Counting(), Ahead(), limits_each={"turns": 2}, progress=False)["outputs"]
    assert turns == [(INNER_TURNS, "max_turns_reached"), (INNER_TURNS - 1, "max_turns_reached")]
    assert row["metrics"]["num_turns"] == 2.0


def test_a_judge_plays_another_environment() -> None:
    played = []

    def judge() -> float:
        played.append(play_inner())
        return 1.0

    env = SingleTurnEnv(dataset=[{"question": "Go.", "answer": ""}], rubric=Rubric(judge))
    (row,) = evaluate(env, lambda observation, info: "x", limits_each={"turns": 1}, progress=False)["outputs"]
    assert played == [WHOLE]
    assert row["reward"] == 1.0


def test_an_opponent_plays_another_environment() -> None:
    played = []

    class Opponent:
        def for_episode(self, env: Any) -> Any:
            def answer(observation: Any, info: Any) -> Any:
                played.append(play_inner())
                return env.action_space.sample()

            return answer

    env = vfgym.TextArenaEnv("TicTacToe-v0", opponents=Opponent())
    (row,) = evaluate(env, "random", num_examples=1, limits_each={"turns": 2}, progress=False)["outputs"]
    assert played
    assert set(played) == {WHOLE}
    assert row["metrics"]["num_turns"] == 2.0


async def test_a_program_of_v1_plays_another_environment() -> None:
    played = []

    async def program(task: Any, state: Any) -> Any:
        played.append(play_inner())
        state["completion"] = [{"role": "assistant", "content": task["question"]}]
        return state

    env = vf.Env(vf.Taskset([{"question": "outer", "answer": "outer"}]), vf.Harness(program=program))
    outputs = await env.evaluate(ScriptedClient(["x"] * 9), "m", limits_each={"turns": 2})
    assert played == [WHOLE]
    assert outputs["outputs"][0]["error"] is None
    assert outputs["outputs"][0]["completion"][0]["content"] == "outer"


def test_what_nested_play_spends_counts_for_the_run() -> None:
    inner = ScriptedClient(["a"] * 50)

    def agent(observation: Any, info: Any) -> str:
        evaluate(Counting(), ModelAgent(inner, "m"), progress=False)
        return "on"

    results = evaluate(Counting(), agent, limits={"requests": 7}, progress=False)
    assert results["metadata"]["stopped_by"]["limit"] == "requests"
    assert inner.calls == 7


@pytest.mark.parametrize("goes_on", ["by itself", "by the library's loop"])
@pytest.mark.parametrize("plays_itself", [False, True])
def test_a_rollout_of_its_authors_own_plays_another_environment_or_another_seat_at_its_own(plays_itself: bool, goes_on: str) -> None:
    played: list[Any] = []

    class Own(Counting):
        async def rollout(self, input: Any, client: Any, model: Any, sampling_args: Any = None) -> Any:
            if played:
                return await super().rollout(input, client, model, sampling_args)
            played.append(None)
            played[0] = await play_inner_async(self.fork() if plays_itself else Counting())
            if goes_on != "by itself":
                return await super().rollout(input, client, model, sampling_args)
            state = await self.init_state(input, client, model, sampling_args)
            for _ in range(INNER_TURNS):
                await self.get_model_response(state, state["prompt"])
            return state

    (row,) = evaluate(Own(), lambda observation, info: "on", limits_each={"turns": 2}, progress=False)["outputs"]
    assert played == [WHOLE]
    assert (row["stop_condition"], row["ending"]) == ("limit_reached", "cut")


@pytest.mark.parametrize("stepped", [False, True])
def test_a_rollout_that_raises_leaves_its_own_state_and_none_of_another_seat(stepped: bool) -> None:
    class Own(vf.MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return []

        async def rollout(self, input: Any, client: Any, model: Any, sampling_args: Any = None) -> Any:
            if input["example_id"]:
                return await super().rollout(input, client, model, sampling_args)
            state = await self.init_state(input, client, model, sampling_args)
            seat = self.fork()
            await seat.areset(options={"example_id": 1})
            await seat.aclose()
            state["note"] = "own"
            raise ModelError("no")

    env = Own(dataset=[{"question": "0"}, {"question": "1"}], rubric=vf.Rubric())
    if stepped:
        with pytest.raises(ModelError):
            env.reset(options={"example_id": 0})
        assert env.state is not None
        assert env.state["note"] == "own"
    else:
        (row,) = env.evaluate_sync(ScriptedClient(["x"]), "m", num_examples=1, state_columns=["note"])["outputs"]
        assert (row["example_id"], row["note"]) == (0, "own")


@pytest.mark.parametrize("waits", ["by itself", "in the library's loop"])
@pytest.mark.parametrize("stepped", [False, True])
async def test_a_rollout_of_its_authors_own_ends_when_its_time_is_over(stepped: bool, waits: str) -> None:
    class Own(vf.MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(3600)

        async def rollout(self, input: Any, client: Any, model: Any, sampling_args: Any = None) -> Any:
            if waits != "by itself":
                return await super().rollout(input, client, model, sampling_args)
            state = await self.init_state(input, client, model, sampling_args)
            await self.get_model_response(state, state["prompt"])
            await asyncio.sleep(3600)

    env, limits = Own(dataset=[{"question": "0"}], rubric=vf.Rubric()), {"time": 0.3}
    if stepped:
        outputs = (await vfgym.aevaluate(env, lambda observation, info: "x", limits_each=limits, progress=False))["outputs"]
    else:
        outputs = (await env.evaluate(ScriptedClient(["x"]), "m", limits_each=limits))["outputs"]
    assert [(row["stop_condition"], row["ending"]) for row in outputs] == [("limit_reached", "cut")]


@pytest.mark.parametrize("stepped", [False, True])
async def test_the_limits_of_a_rollout_hold_when_it_is_played_again(stepped: bool) -> None:
    usage = Usage(prompt_tokens=9, reasoning_tokens=0, completion_tokens=1, total_tokens=10)
    model = FakeModel(lambda request: Response("", 0, "m", usage, AssistantMessage("x")))
    attempts, asked = [], []

    class Asking(vf.MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            attempts.append(state)
            if len(attempts) == 1:
                raise vf.InfraError("once")
            for _ in range(9):
                asked.append(await model.get_response(messages, "m"))

    env = Asking(dataset=[{"question": "0"}], rubric=vf.Rubric())
    how: dict[str, Any] = {"limits_each": {"tokens": 45}, "max_retries": 1}
    if stepped:
        outputs = (await vfgym.aevaluate(env, ModelAgent(model, "m"), progress=False, **how))["outputs"]
    else:
        outputs = (await env.evaluate(model, "m", **how))["outputs"]
    assert (len(attempts), len(asked)) == (2, 3)  # with the two answers of the attempts
    assert [(row["stop_condition"], row["ending"]) for row in outputs] == [("limit_reached", "cut")]


async def test_a_run_rollout_of_its_authors_own_has_the_limits_of_the_rollout() -> None:
    class Own(vf.MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return [{"role": "user", "content": "go on"}]

        async def run_rollout(self, *args: Any, **kwargs: Any) -> Any:
            return await super().run_rollout(*args, **kwargs)

    env = Own(dataset=[{"question": "0"}], rubric=vf.Rubric(), max_turns=INNER_TURNS)
    client = ScriptedClient(["x"] * INNER_TURNS)
    outputs = (await env.evaluate(client, "m", independent_scoring=True, limits_each={"turns": 2}))["outputs"]
    assert [(row["stop_condition"], client.calls) for row in outputs] == [("limit_reached", 2)]


@pytest.mark.parametrize("nested", [False, True])
def test_the_outer_limit_holds_after_nested_play(nested: bool) -> None:
    """An inner episode that is over does not end the outer one's limits."""

    def agent(observation: Any, info: Any) -> str:
        if nested:
            play_inner()
        return "on"

    (row,) = evaluate(Counting(), agent, limits_each={"turns": 3}, progress=False)["outputs"]
    assert row["metrics"]["num_turns"] == 3.0


@pytest.mark.parametrize("outer_kind", ["tool", "program"])
async def test_an_environment_of_v1_that_is_played_inside_plays_its_own_task(outer_kind: str) -> None:
    asked = []

    async def inner_program(task: Any, state: Any) -> Any:
        state["completion"] = [{"role": "assistant", "content": task["question"]}]
        return state

    async def play_v1() -> str:
        env = vf.Env(vf.Taskset([{"question": "inner", "answer": "inner"}]), vf.Harness(program=inner_program))
        outputs = await env.evaluate(ScriptedClient(["x"] * 9), "m")
        stepped = vf.Env(vf.Taskset([{"question": "stepped", "answer": ""}]), vf.Harness(client=ScriptedClient(["y"]), model="m"))
        observation, _ = await stepped.areset()
        asked.append((outputs["outputs"][0]["completion"][0]["content"], observation[-1].content))
        await stepped.aclose()
        return "seen"

    async def program(task: Any, state: Any) -> Any:
        await play_v1()
        state["completion"] = [{"role": "assistant", "content": task["question"]}]
        return state

    if outer_kind == "tool":
        env: Any = vf.ToolEnv(tools=[play_v1], dataset=[{"question": "outer", "answer": ""}], rubric=vf.Rubric(), max_turns=3)
        client = ScriptedClient([calling(("play_v1", {})), "done"] * 2)
    else:
        env = vf.Env(vf.Taskset([{"question": "outer", "answer": "outer"}]), vf.Harness(program=program))
        client = ScriptedClient(["x"] * 9)
    outputs = await env.evaluate(client, "m", rollouts_per_example=2, max_concurrent=1, limits_each={"turns": 4})
    assert [row["error"] for row in outputs["outputs"]] == [None, None]
    assert asked == [("inner", "stepped")] * len(asked)
    assert asked
