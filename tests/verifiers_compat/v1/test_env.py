"""Env: a taskset and a harness evaluated, scored in groups, and stepped as a Gymnasium environment."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import verifiers_compat as vf0
import verifiers_compat.v1 as vf
import vfgym
from tests.models import Recording
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Response, ToolCall
from vfgym.testing import ScriptedClient

ROWS = [{"question": f"{i} + {i}?", "answer": str(2 * i)} for i in range(3)]
CALL = AssistantMessage(None, tool_calls=[ToolCall("c1", "add", '{"a": 1, "b": 1}')])


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def correct(task: vf.Task, state: vf.State) -> float:
    return float(state["completion"][-1]["content"] == task["answer"])


def make(**kwargs: Any) -> vf.Env:
    return vf.Env(vf.Taskset(ROWS, toolsets=[add], rewards=[correct], **kwargs), vf.Harness(system_prompt="be kind"))


async def test_evaluate_gives_scored_rows() -> None:
    env = make()
    assert isinstance(env, vf0.Environment)
    outputs = (await env.evaluate(ScriptedClient([CALL, "2"]), "m", state_columns=["num_model_requests"]))["outputs"]
    assert [row["reward"] for row in outputs] == [0.0, 1.0, 0.0]
    assert [row["answer"] for row in outputs] == ["0", "2", "4"]
    row = outputs[0]
    assert (row["stop_condition"], row["num_model_requests"], row["metrics"]) == ("no_tools", 2, {"correct": 0.0})
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert [message["role"] for message in row["completion"]] == ["assistant", "tool", "assistant"]
    assert [tool["name"] for tool in row["tool_defs"]] == ["add"]
    assert row["timing"]["generation"]["duration"] > 0
    assert len(row["timing"]["model"]["spans"]) == 2


async def test_tokens_are_counted_and_sampling_args_heeded() -> None:
    client = Recording(["x"])
    taskset = vf.Taskset(ROWS[:1])
    env = vf.Env(taskset, vf.Harness(model="own", sampling_args={"temperature": 0.0, "top_p": 0.5}), sampling_args={"max_tokens": 3})
    [row] = (await env.evaluate(client, "m", sampling_args={"temperature": 1.0}))["outputs"]
    assert (row["token_usage"]["input_tokens"], row["token_usage"]["output_tokens"]) == (3.0, 5.0)
    expected = {"n": 1, "extra_body": {}, "temperature": 1.0, "top_p": 0.5, "max_tokens": 3}
    assert [(asked["model"], asked["sampling_args"]) for asked in client.asked] == [("m", expected)]


async def test_an_exception_of_a_signal_is_the_error_of_its_rollout() -> None:
    def sometimes(task: vf.Task, state: vf.State) -> float:
        if task["answer"] == "2":
            raise ZeroDivisionError
        return 1.0

    env = vf.Env(vf.Taskset(ROWS, rewards=[sometimes]))
    outputs = (await env.evaluate(ScriptedClient(["x"]), "m"))["outputs"]
    assert [row["error"] is None for row in outputs] == [True, False, True]
    assert "ZeroDivisionError" in outputs[1]["error"]["error_chain_repr"]
    assert outputs[1]["completion"][-1]["content"] == "x"


class Together(vf.Taskset):
    groups: list[Any]

    async def init_group(self, task: vf.Task, num_rollouts: int) -> tuple[list[vf.Task], list[vf.State]]:
        self.groups.append((task["answer"], num_rollouts))
        tasks = [self.task({**task, "hint": number}) for number in range(num_rollouts)]
        return tasks, [vf.State.for_task(each) for each in tasks]

    @vf.update(stage="group")
    def rank(self, tasks: Any, states: Any) -> None:
        for number, state in enumerate(states):
            state["rank"] = number

    @vf.reward
    def hinted(self, task: vf.Task, state: vf.State) -> float:
        return float(task["hint"])

    @vf.reward(stage="group", weight=10.0)
    def best(self, tasks: Any, states: Any) -> list[float]:
        return [float(state["reward"] == max(each["reward"] for each in states)) for state in states]


async def test_groups_are_begun_scored_and_cleaned_up_as_a_whole() -> None:
    taskset = Together(ROWS[:2])
    taskset.groups = []
    env = vf.Env(taskset)
    assert env.requires_group_rollouts
    outputs = (await env.evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=3, state_columns=["rank"]))["outputs"]
    assert sorted(taskset.groups) == [("0", 3), ("2", 3)]
    assert sorted(row["reward"] for row in outputs) == [0.0, 0.0, 1.0, 1.0, 12.0, 12.0]
    assert [row["rank"] for row in outputs] == [0, 1, 2, 0, 1, 2]
    assert outputs[0]["metrics"].keys() == {"hinted", "best"}


async def test_a_group_of_rows_of_their_own() -> None:
    taskset = Together(ROWS[:1])
    taskset.groups = []
    rows = vf.Env(taskset).get_dataset()
    outputs = await vf.Env(taskset).run_group([rows[0], rows[0]], ScriptedClient(["x"]), "m")
    assert (taskset.groups, sorted(row["reward"] for row in outputs)) == ([("0", 2)], [0.0, 11.0])


async def test_a_group_must_begin_with_as_many_tasks_and_states_as_it_has_rollouts() -> None:
    class Short(vf.Taskset):
        async def init_group(self, task: vf.Task, num_rollouts: int) -> tuple[list[vf.Task], list[vf.State]]:
            tasks, states = await super().init_group(task, num_rollouts)
            return tasks, states[1:]

    outputs = (await vf.Env(Short(ROWS[:1])).evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=2))["outputs"]
    assert ["must return 2 tasks and states, got 2 and 1" in str(row["error"]) for row in outputs] == [True, True]
    assert [row["reward"] for row in outputs] == [0.0, 0.0]


@pytest.mark.parametrize("is_grouped", [False, True])
async def test_a_row_that_is_no_task_is_the_error_of_its_rollouts(is_grouped: bool) -> None:
    def best(tasks: Any, states: Any) -> list[float]:
        return [1.0] * len(states)

    env = vf.Env(vf.Taskset(ROWS[:1], rewards=[best] if is_grouped else [correct]))
    rows = [{"prompt": [], "example_id": 0, "info": {"task": "no JSON"}}]
    outputs = (await env.generate(rows, ScriptedClient(["0"]), "m"))["outputs"]
    assert ["must be JSON" in str(row["error"]) for row in outputs] == [True]
    assert outputs[0]["reward"] == 0.0


async def test_a_repeated_rollout_starts_from_what_the_failed_one_started_from() -> None:
    class Flaky(ScriptedClient):
        async def get_response(self, *args: Any, **kwargs: Any) -> Response:
            if self.calls == 1:
                self.calls += 1
                raise vf.InfraError("gone")
            return await super().get_response(*args, **kwargs)

    taskset = Together(ROWS[:1], toolsets=[add])
    taskset.groups = []
    client = Flaky([CALL, "x"])
    outputs = await vf.Env(taskset).evaluate(client, "m", rollouts_per_example=2, max_retries=1, state_columns=["num_model_requests"])
    assert taskset.groups == [("0", 2)]
    assert sorted(row["reward"] for row in outputs["outputs"]) == [0.0, 11.0]
    assert [(row["error"], row["num_model_requests"]) for row in outputs["outputs"]] == [(None, 2), (None, 2)]


async def test_scoring_can_be_switched_off() -> None:
    env = vf.Env(vf.Taskset(ROWS[:1], rewards=[correct]), score_rollouts=False)
    [row] = (await env.evaluate(ScriptedClient(["0"]), "m"))["outputs"]
    assert (row["reward"], row["metrics"]) == (0.0, {})


async def test_group_objects_are_closed_where_scoring_is_switched_off() -> None:
    """Nobody scores the group then, so each rollout ends its own."""
    left: list[int] = []

    def best(tasks: Any, states: Any) -> list[float]:
        return [1.0] * len(states)

    def leave(tasks: Any, states: Any) -> None:
        left.append(len(states))

    group = {"fn": leave, "stage": "group"}
    env = vf.Env(vf.Taskset(ROWS[:1], rewards=[best], cleanups=[group]), score_rollouts=False)
    outputs = (await env.evaluate(ScriptedClient(["0"]), "m", rollouts_per_example=3, state_columns=["advantage"]))["outputs"]
    assert [(row["rollout"], row["reward"], row["advantage"]) for row in outputs] == [(0, 0.0, 0.0), (1, 0.0, 0.0), (2, 0.0, 0.0)]
    assert left == [1, 1, 1]
    env.set_score_rollouts(True)
    await env.evaluate(ScriptedClient(["0"]), "m", rollouts_per_example=3)
    assert left == [1, 1, 1, 3]


# As a Gymnasium environment


def test_it_can_be_stepped() -> None:
    env = make()
    conversation, info = env.reset(options={"example_id": 1})
    assert [message["role"] for message in conversation] == ["system", "user"]
    assert [tool["function"]["name"] for tool in info["tools"]] == ["add"]
    conversation, reward, terminated, truncated, info = env.step(CALL)
    assert (conversation[-1]["content"], reward, terminated, truncated) == ("2", 0.0, False, False)
    conversation, reward, terminated, truncated, info = env.step("2")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["stop_condition"], info["metrics"]) == ("no_tools", {"correct": 1.0})
    assert [message["role"] for message in conversation] == ["system", "user", "assistant", "tool", "assistant"]
    env.close()


def test_a_limit_truncates_and_a_failure_ends_an_episode() -> None:
    env = vf.Env(vf.Taskset(ROWS, toolsets=[add]), vf.Harness(max_turns=1))
    env.reset(seed=0)
    outcome = env.step(CALL)
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (False, True, "max_turns_reached")
    env.reset(seed=0)
    outcome = env.fail(RuntimeError("no model"))
    assert (outcome.terminated, outcome.info["stop_condition"]) == (True, "has_error")
    assert "no model" in outcome.info["error"]


def test_an_abandoned_episode_is_cleaned_up() -> None:
    cleaned: list[str] = []

    def tidy(task: vf.Task, state: vf.State) -> None:
        cleaned.append(str(task["answer"]))

    env = vf.Env(vf.Taskset(ROWS, cleanups=[tidy]))
    env.reset(options={"example_id": 1})
    env.reset(options={"example_id": 2})
    env.truncate()
    assert cleaned == ["2", "4"]
    env.close()


def test_stepping_and_rolling_out_agree() -> None:
    env = make()
    rolled = asyncio.run(env.evaluate(ScriptedClient([CALL, "2"]), "m"))["outputs"][1]
    env.reset(options={"example_id": 1})
    env.step(CALL)
    env.step("2")
    state = env.state
    assert state is not None
    assert (state["reward"], state["metrics"], state["stop_condition"]) == (rolled["reward"], rolled["metrics"], rolled["stop_condition"])
    assert json.loads(json.dumps(state["completion"])) == json.loads(json.dumps(rolled["completion"]))


def test_a_program_is_stepped_through_its_endpoint() -> None:
    """Nobody has to name a model: whoever steps is the model."""

    async def program(task: vf.Task, state: vf.State) -> None:
        client = state.get_client()
        for question in ("one?", "two?"):
            await client.chat.completions.create(model=state.get_model(), messages=[{"role": "user", "content": question}])

    def plain_program(task: vf.Task, state: vf.State) -> None:
        client = state.get_client(sync=True)
        for question in ("one?", "two?"):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])

    for each in (program, plain_program):
        env = vf.Env(vf.Taskset(ROWS), vf.Harness(each))
        conversation, _ = env.reset(seed=0)
        assert conversation[-1]["content"] == "one?"
        outcome = env.step("1")
        assert (outcome.observation[-1]["content"], outcome.terminated) == ("two?", False)
        outcome = env.step("2")
        assert (outcome.terminated, outcome.info["stop_condition"]) == (True, "program_completed")
        env.close()


def test_vfgym_evaluates_it_too() -> None:
    outputs = vfgym.evaluate(make(), lambda observation, info: "2", num_examples=3, progress=False)["outputs"]
    assert [row["reward"] for row in outputs] == [0.0, 1.0, 0.0]


def test_group_signals_keep_it_from_being_stepped_alone() -> None:
    taskset = Together(ROWS)
    taskset.groups = []
    with pytest.raises(ConfigurationError, match="best"):
        vf.Env(taskset).reset(seed=0)


# Making one


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Taskset"):
        vf.Env([{"question": "?"}])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="rubric"):
        vf.Env(vf.Taskset(ROWS), rubric=None)
    with pytest.raises(ConfigurationError, match=r"Taskset has no tasks .*give it source= or eval_source="):
        vf.Env(vf.Taskset())
    with pytest.raises(ConfigurationError, match="the source of Taskset has no rows"):
        vf.Env(vf.Taskset(source=list)).get_dataset()
    with pytest.raises(ConfigurationError, match="the eval_source of Taskset has no rows"):
        vf.Env(vf.Taskset(ROWS, eval_source=[])).reset(seed=0, options={"split": "eval"})
    player = vf.Harness()
    vf.Env(vf.Taskset(ROWS), player)
    with pytest.raises(ConfigurationError, match="another"):
        vf.Env(vf.Taskset(ROWS), player)


async def test_teardown_comes_with_the_end_of_the_environment() -> None:
    log: list[str] = []

    class Mine(vf.Taskset):
        @vf.teardown
        async def leave(self) -> None:
            log.append("teardown")

    env = vf.Env(Mine(ROWS))
    await env.evaluate(ScriptedClient(["x"]), "m")
    await env.aclose()
    await env.aclose()
    assert log == ["teardown"]
