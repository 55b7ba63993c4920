"""Env: a taskset and a harness evaluated, scored in groups, and stepped as a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat as vf0
import verifiers_compat.v1 as vf
from tests.models import InOrder, Recording, calling
from tests.verifiers_compat.models import roles
from tests.verifiers_compat.v1.playing import ROWS, add, best, noting, noting_groups
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient

CALL = calling(("add", {"a": 1, "b": 1}))
CALL_FIELDS = {"content": None, "tool_calls": CALL.tool_calls}


def correct(task: vf.Task, state: vf.State) -> float:
    return float(state["completion"][-1]["content"] == task["answer"])


def make(**kwargs: Any) -> vf.Env:
    return vf.Env(vf.Taskset(ROWS, toolsets=[add], rewards=[correct], **kwargs), vf.Harness(system_prompt="be kind"))


async def rows_of(env: vf.Env, *answers: Any, **options: Any) -> Any:
    return (await env.evaluate(ScriptedClient(answers or ["x"]), "m", **options))["outputs"]


async def test_evaluate_gives_scored_rows() -> None:
    env = make()
    assert isinstance(env, vf0.Environment)
    outputs = await rows_of(env, CALL, "2", state_columns=["num_model_requests"])
    assert [(row["reward"], row["answer"]) for row in outputs] == [(0.0, "0"), (1.0, "2"), (0.0, "4")]
    row = outputs[0]
    assert (row["stop_condition"], row["num_model_requests"], row["metrics"]) == ("no_tools", 2, {"correct": 0.0})
    assert (roles(row["prompt"]), roles(row["completion"])) == (["system", "user"], ["assistant", "tool", "assistant"])
    assert [tool["name"] for tool in row["tool_defs"]] == ["add"]
    assert (row["timing"]["generation"]["duration"] > 0, len(row["timing"]["model"]["spans"])) == (True, 2)


async def test_tokens_are_counted_and_sampling_args_heeded() -> None:
    client = Recording(["x"])
    harness = vf.Harness(model="own", sampling_args={"temperature": 0.0, "top_p": 0.5})
    env = vf.Env(vf.Taskset(ROWS[:1]), harness, sampling_args={"max_tokens": 3})
    [row] = (await env.evaluate(client, "m", sampling_args={"temperature": 1.0}))["outputs"]
    assert (row["token_usage"]["input_tokens"], row["token_usage"]["output_tokens"]) == (3.0, 5.0)
    expected = {"n": 1, "extra_body": {}, "temperature": 1.0, "top_p": 0.5, "max_tokens": 3}
    assert [(asked["model"], asked["sampling_args"]) for asked in client.asked] == [("m", expected)]


class Together(vf.Taskset):
    """Notes the groups that begin; its tasks differ by their place in the group."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups: list[Any] = []

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
    env = vf.Env(taskset)
    assert env.requires_group_rollouts
    outputs = await rows_of(env, rollouts_per_example=3, state_columns=["rank"])
    assert sorted(taskset.groups) == [("0", 3), ("2", 3)]
    assert sorted(row["reward"] for row in outputs) == [0.0, 0.0, 1.0, 1.0, 12.0, 12.0]
    assert [row["rank"] for row in outputs] == [0, 1, 2, 0, 1, 2]
    assert outputs[0]["metrics"].keys() == {"hinted", "best"}
    taskset.groups.clear()
    row = env.get_dataset()[0]
    outputs = await env.run_group([row, row], ScriptedClient(["x"]), "m")
    assert (taskset.groups, sorted(row["reward"] for row in outputs)) == ([("0", 2)], [0.0, 11.0])
    with pytest.raises(ConfigurationError, match="best"):
        env.reset(seed=0)


async def test_a_group_must_begin_with_as_many_tasks_and_states_as_it_has_rollouts() -> None:
    class Short(vf.Taskset):
        async def init_group(self, task: vf.Task, num_rollouts: int) -> tuple[list[vf.Task], list[vf.State]]:
            tasks, states = await super().init_group(task, num_rollouts)
            return tasks, states[1:]

    outputs = await rows_of(vf.Env(Short(ROWS[:1])), rollouts_per_example=2)
    assert ["must return 2 tasks and states, got 2 and 1" in str(row["error"]) for row in outputs] == [True, True]
    assert [row["reward"] for row in outputs] == [0.0, 0.0]


@pytest.mark.parametrize("reward", [best, correct])
async def test_a_row_that_is_no_task_is_the_error_of_its_rollouts(reward: Any) -> None:
    rows = [{"prompt": [], "example_id": 0, "info": {"task": "no JSON"}}]
    [row] = (await vf.Env(vf.Taskset(ROWS[:1], rewards=[reward])).generate(rows, ScriptedClient(["0"]), "m"))["outputs"]
    assert ("must be JSON" in str(row["error"]), row["reward"]) == (True, 0.0)


async def test_a_repeated_rollout_starts_from_what_the_failed_one_started_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.0)
    taskset, client = Together(ROWS[:1], toolsets=[add]), InOrder(CALL_FIELDS, vf.InfraError("gone"), CALL_FIELDS, "x", CALL_FIELDS, "x")
    options: dict[str, Any] = {"rollouts_per_example": 2, "max_retries": 1, "max_concurrent": 1, "state_columns": ["num_model_requests"]}
    rows = (await vf.Env(taskset).evaluate(client, "m", **options))["outputs"]
    assert (taskset.groups, client.answers) == ([("0", 2)], [])
    assert [(row["error"], row["num_model_requests"], row["reward"]) for row in rows] == [(None, 2, 0.0), (None, 2, 11.0)]


async def test_where_scoring_is_switched_off_each_rollout_ends_its_own_group() -> None:
    log: list[Any] = []
    env = vf.Env(vf.Taskset(ROWS[:1], rewards=[best], cleanups=[noting_groups(log, "leave")]), score_rollouts=False)
    outputs = await rows_of(env, rollouts_per_example=3, state_columns=["advantage"])
    told = [(row["rollout"], row["reward"], row["metrics"], row["advantage"]) for row in outputs]
    assert (told, log) == ([(number, 0.0, {}, 0.0) for number in range(3)], [("leave", 1)] * 3)
    env.set_score_rollouts(True)
    await rows_of(env, rollouts_per_example=3)
    assert log[3:] == [("leave", 3)]


def test_a_limit_truncates_and_a_failure_ends_an_episode() -> None:
    env = vf.Env(vf.Taskset(ROWS, toolsets=[add]), vf.Harness(max_turns=1))
    env.reset(seed=0)
    outcome = env.step(CALL)
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (False, True, "max_turns_reached")
    env.reset(seed=0)
    outcome = env.fail(RuntimeError("no model"))
    assert (outcome.terminated, outcome.info["stop_condition"], "no model" in outcome.info["error"]) == (True, "has_error", True)


def test_an_abandoned_episode_is_cleaned_up() -> None:
    log: list[str] = []
    env = vf.Env(vf.Taskset(ROWS, cleanups=[noting(log, "tidy")]))
    env.reset(options={"example_id": 1})
    env.reset(options={"example_id": 2})
    assert log == ["tidy"]
    env.truncate()
    assert log == ["tidy", "tidy"]
    env.close()


def test_what_does_not_go_together_is_refused() -> None:
    player = vf.Harness()
    vf.Env(vf.Taskset(ROWS), player)
    refused: list[tuple[Any, str]] = [
        (lambda: vf.Env([{"question": "?"}]), "Taskset"),  # type: ignore[arg-type]
        (lambda: vf.Env(vf.Taskset(ROWS), rubric=None), "rubric"),
        (lambda: vf.Env(vf.Taskset()), r"Taskset has no tasks .*give it source= or eval_source="),
        (lambda: vf.Env(vf.Taskset(source=list)).get_dataset(), "the source of Taskset has no rows"),
        (lambda: vf.Env(vf.Taskset(ROWS, eval_source=[])).reset(options={"split": "eval"}), "the eval_source of Taskset has no rows"),
        (lambda: vf.Env(vf.Taskset(ROWS), player), "another"),
        (lambda: vf.Env(vf.Taskset(ROWS, user=lambda state: None), vf.Harness(user=lambda state: None)), "user"),
    ]
    for make, says in refused:
        with pytest.raises(ConfigurationError, match=says):
            make()


async def test_rollouts_of_an_environment_that_does_not_score_are_not_scored() -> None:
    log: list[Any] = []
    env = vf.Env(vf.Taskset(ROWS[:1], rewards=[noting(log, "good", 1.0)]), score_rollouts=False)
    [output] = (await env.evaluate(ScriptedClient(["x"]), "m"))["outputs"]
    assert (output["reward"], output["metrics"], log) == (0.0, {}, [])
