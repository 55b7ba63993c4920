"""Rollouts that belong together: a harness inside another's rollout, and the rollouts of a group."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import InOrder, calling
from tests.verifiers_compat.models import response
from tests.verifiers_compat.v1.playing import ROWS, Counter, best, counting
from vfgym.testing import ScriptedClient

CHILD = {"prompt": [{"role": "user", "content": "help"}]}
SEARCHING = calling(("search", {"key": "a"}))


async def search(key: str) -> str:
    """Search for a key."""
    return f"value of {key}"


@pytest.mark.parametrize("transcript", ["append", "private"])
@pytest.mark.parametrize("where", ["program", "tool", "setup"])
async def test_a_rollout_may_run_another_harness(where: str, transcript: str) -> None:
    """The child asks its model, calls its tool, and is recorded where it says: those numbers are verifiers 0.1.14's."""
    children: list[vf.State] = []

    async def delegate(state: vf.State) -> str:
        """Let somebody else do it."""
        child_state = state.for_task(CHILD, borrow=["model"], tools="search", transcript=transcript)
        children.append(await vf.Harness(max_turns=3).run(CHILD, child_state))
        return str(children[0]["completion"][-1]["content"])

    async def in_program(state: vf.State) -> None:
        await delegate(state)

    answers: list[Any] = [SEARCHING, "found"]
    lists: dict[str, Any] = {"toolsets": [search]}
    own = 0
    if where == "program":
        lists["program"] = in_program
    elif where == "tool":
        lists["toolsets"], answers, own = [search, delegate], [calling(("delegate", {})), *answers, "done"], 2
    else:
        lists["setups"], answers, own = [in_program], [*answers, "done"], 1
    state = await vf.Harness(client=InOrder(*answers), model="m", **lists).run({"prompt": "go"})
    [child] = children
    kept = 0 if transcript == "append" else 2
    assert [message["content"] for message in child["completion"]] == [None, "value of a", "found"]
    assert (child["stop_condition"], child["num_model_requests"], len(child["trajectory"])) == ("no_tools", 2, kept)
    assert (len(state["trajectory"]), state["num_model_requests"], state["error"]) == (own + 2 - kept, own + 2 - kept, None)


@pytest.mark.parametrize(
    ("lent", "steps", "tokens"),
    [
        ({"borrow": "model", "tools": "search", "transcript": "append"}, 3, 9.0),
        ({"borrow": "model", "tools": "search"}, 1, 9.0),
        ({"tools": "search", "transcript": "append"}, 3, 3.0),
    ],
)
async def test_the_trajectory_of_an_episode_is_that_of_its_rollout(lent: dict[str, Any], steps: int, tokens: float) -> None:
    """A child that keeps its own is not in it. What the rollout's model was asked is counted, and no other model's."""

    async def delegate(state: vf.State) -> None:
        await vf.Harness(client=client, model="m").run(CHILD, state.for_task(CHILD, **lent))

    client = InOrder(*(response(said, usage=(3, 5)) for said in (SEARCHING, "found", "done")))
    env = vf.Env(vf.Taskset(ROWS[:1], toolsets=[search], setups=[delegate]))
    [row] = (await env.evaluate(client, "m", state_columns=["trajectory", "num_model_requests"]))["outputs"]
    assert (len(row["trajectory"]), row["num_model_requests"], row["token_usage"]["input_tokens"]) == (steps, steps, tokens)
    assert row["completion"] == [{"role": "assistant", "content": "done"}]


class Ranked(vf.Taskset):
    log: list[Any]

    @vf.update(stage="group")
    def number(self, tasks: Any, states: Any) -> None:
        for place, state in enumerate(states):
            state["place"] = place

    @vf.reward
    def own(self, task: vf.Task, state: vf.State) -> float:
        return 1.0

    @vf.reward(stage="group", weight=10.0)
    def rank(self, tasks: Any, states: Any) -> list[float]:
        return [float(state["place"]) for state in states]

    @vf.advantage
    def centred(self, tasks: Any, states: Any) -> list[float]:
        mean = sum(state["reward"] for state in states) / len(states)
        return [state["reward"] - mean for state in states]

    @vf.cleanup(stage="group")
    def leave(self, tasks: Any, states: Any) -> None:
        self.log.append(("left", [Counter.made[-1].is_closed, len(states)]))


def ranked() -> tuple[Ranked, vf.Harness]:
    """Return a taskset whose group shares an object among its tools, and its harness."""
    taskset = Ranked(ROWS[:1], toolsets=[counting("group")])
    taskset.log = []
    harness = vf.Harness(client=ScriptedClient([calling(("count", {})), "done"]), model="m")
    harness.attach(taskset)
    return taskset, harness


async def test_a_group_is_played_scored_and_cleaned_up_by_hand() -> None:
    """The same group key makes the states a group: they share its objects, and are finalized by who played them."""
    taskset, harness = ranked()
    tasks, states = await taskset.init_group(taskset.task(taskset.rows()[0]), 3)
    for state in states:
        state["runtime"]["group_key"] = "mine"
    states = await asyncio.gather(*(harness.run(task, state) for task, state in zip(tasks, states, strict=True)))
    assert [state["reward"] for state in states] == [1.0] * 3
    assert [(counter.count, counter.is_closed) for counter in Counter.made] == [(3, False)]
    assert await harness.score_group(tasks, states) == states
    await harness.cleanup_group(tasks, states)
    assert [state.finalize()["reward"] for state in states] == [1.0, 11.0, 21.0]
    assert [state["metrics"] for state in states] == [{"own": 1.0, "rank": float(place)} for place in range(3)]
    assert [state["advantage"] for state in states] == [-10.0, 0.0, 10.0]
    assert [state["trajectory"][0]["advantage"] for state in states] == [-10.0, 0.0, 10.0]
    assert taskset.log == [("left", [False, 3])], "the objects are there until the group's cleanup handlers have run"
    assert Counter.made[0].is_closed
    assert all(state.running is None for state in states)


async def test_a_run_gives_a_group_the_numbers_that_it_has_by_hand() -> None:
    taskset, harness = ranked()
    harness.taskset = None
    options: dict[str, Any] = {"rollouts_per_example": 3, "state_columns": ["advantage", "place"]}
    rows = (await vf.Env(taskset, harness).evaluate(harness.client, "m", **options))["outputs"]
    assert [(row["reward"], row["advantage"], row["place"]) for row in rows] == [(1.0, -10.0, 0), (11.0, 0.0, 1), (21.0, 10.0, 2)]
    assert ([(counter.count, counter.is_closed) for counter in Counter.made], taskset.log) == ([(3, True)], [("left", [False, 3])])


async def test_what_a_group_shared_is_let_go_though_none_of_its_rollouts_can_be_scored() -> None:
    async def program(state: vf.State) -> None:
        await state.get_tools()["count"]()
        raise ZeroDivisionError

    env = vf.Env(vf.Taskset(ROWS[:1], rewards=[best], toolsets=[counting("group")]), vf.Harness(program))
    rows = (await env.evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=2))["outputs"]
    assert [row["error"]["error"] for row in rows] == ["ZeroDivisionError"] * 2
    assert [counter.is_closed for counter in Counter.made] == [True]


async def test_without_a_group_key_each_rollout_is_a_group_of_its_own() -> None:
    """As with verifiers 0.1.14: its cleanup handlers run after each; group rewards can be added later all the same."""
    taskset, harness = ranked()
    tasks, states = await taskset.init_group(taskset.task(taskset.rows()[0]), 2)
    states = [await harness.run(task, state) for task, state in zip(tasks, states, strict=True)]
    assert [counter.is_closed for counter in Counter.made] == [True, True]
    assert [state["reward"] for state in await harness.score_group(tasks, states)] == [1.0, 11.0]
    assert taskset.log == [("left", [True, 1])] * 2
