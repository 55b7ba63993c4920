"""Rollouts that belong together: a harness inside another's rollout, and the rollouts of a group."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import InOrder, calling
from vfgym import Response, Usage
from vfgym.messages import ResponseMessage
from vfgym.testing import ScriptedClient

ROWS = [{"question": "2 + 2?", "answer": "4"}]


ANSWERS: list[Any] = [
    {"content": None, "tool_calls": calling(("search", {"key": "a"})).tool_calls},
    {"content": "found"},
    {"content": "done"},
]


CHILD = {"prompt": [{"role": "user", "content": "help"}]}


async def search(key: str) -> str:
    """Search for a key."""
    return f"value of {key}"


async def ask_child(state: vf.State, transcript: str = "append") -> vf.State:
    child_state = state.for_task(CHILD, borrow=["model"], tools="search", transcript=transcript)
    return await vf.Harness(max_turns=3).run(CHILD, child_state)


@pytest.mark.parametrize("transcript", ["append", "private"])
@pytest.mark.parametrize("where", ["program", "tool", "setup"])
async def test_a_rollout_may_run_another_harness(where: str, transcript: str) -> None:
    """The child asks its model, calls its tool, and is recorded where it says: those numbers are verifiers 0.1.14's."""
    children: list[vf.State] = []

    async def delegate(state: vf.State) -> str:
        """Let somebody else do it."""
        children.append(await ask_child(state, transcript))
        return str(children[0]["completion"][-1]["content"])

    async def in_program(state: vf.State) -> None:
        await delegate(state)

    answers: list[Any] = [calling(("search", {"key": "a"})), "found"]
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
    assert [message["content"] for message in child["completion"]] == [None, "value of a", "found"]
    assert (child["stop_condition"], child["num_model_requests"], len(child["trajectory"])) == (
        "no_tools",
        2,
        0 if transcript == "append" else 2,
    )
    recorded = own + (2 if transcript == "append" else 0)
    assert (len(state["trajectory"]), state["num_model_requests"]) == (recorded, recorded)
    assert state["error"] is None


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
        child = vf.Harness(client=client, model="m")
        await child.run(CHILD, state.for_task(CHILD, **lent))

    answers = [Response("r", 0, "m", Usage(3, 0, 5, 8), ResponseMessage(**fields)) for fields in ANSWERS]
    env = vf.Env(vf.Taskset(ROWS, toolsets=[search], setups=[delegate]))
    client = InOrder(*answers)
    [row] = (await env.evaluate(client, "m", state_columns=["trajectory", "num_model_requests"]))["outputs"]
    assert (len(row["trajectory"]), row["num_model_requests"]) == (steps, steps)
    assert row["token_usage"]["input_tokens"] == tokens
    assert row["completion"] == [{"role": "assistant", "content": "done"}]


class Shared:
    made: list[Shared] = []

    def __init__(self) -> None:
        self.calls, self.is_closed = 0, False
        Shared.made.append(self)

    def close(self) -> None:
        self.is_closed = True


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
        self.log.append(("left", [Shared.made[-1].is_closed, len(states)]))


def ranked() -> tuple[Ranked, vf.Harness]:
    """Return a taskset whose group shares an object among its tools, and its harness."""
    Shared.made.clear()

    def count(shared: Shared) -> str:
        """Count the calls."""
        shared.calls += 1
        return str(shared.calls)

    counting = vf.Toolset([count], bindings={"count.shared": "objects.shared"}, objects={"shared": Shared}, scope="group")
    taskset = Ranked(ROWS, toolsets=[counting])
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
    assert (len(Shared.made), Shared.made[0].calls, Shared.made[0].is_closed) == (1, 3, False)
    assert await harness.score_group(tasks, states) == states
    await harness.cleanup_group(tasks, states)
    assert [state.finalize()["reward"] for state in states] == [1.0, 11.0, 21.0]
    assert [state["metrics"] for state in states] == [{"own": 1.0, "rank": float(place)} for place in range(3)]
    assert [state["advantage"] for state in states] == [-10.0, 0.0, 10.0]
    assert [state["trajectory"][0]["advantage"] for state in states] == [-10.0, 0.0, 10.0]
    assert taskset.log == [("left", [False, 3])], "the objects are there until the group's cleanup handlers have run"
    assert Shared.made[0].is_closed
    assert all(state.running is None for state in states)


async def test_a_run_gives_a_group_the_numbers_that_it_has_by_hand() -> None:
    taskset, harness = ranked()
    harness.taskset = None
    rows = (await vf.Env(taskset, harness).evaluate(harness.client, "m", rollouts_per_example=3, state_columns=["advantage", "place"]))[
        "outputs"
    ]
    assert [(row["reward"], row["advantage"], row["place"]) for row in rows] == [(1.0, -10.0, 0), (11.0, 0.0, 1), (21.0, 10.0, 2)]
    assert (len(Shared.made), Shared.made[0].calls, Shared.made[0].is_closed) == (1, 3, True)
    assert taskset.log == [("left", [False, 3])]


async def test_without_a_group_key_each_rollout_is_a_group_of_its_own() -> None:
    """As with verifiers 0.1.14: its cleanup handlers run after each; group rewards can be added later all the same."""
    taskset, harness = ranked()
    tasks, states = await taskset.init_group(taskset.task(taskset.rows()[0]), 2)
    states = [await harness.run(task, state) for task, state in zip(tasks, states, strict=True)]
    assert (len(Shared.made), all(shared.is_closed for shared in Shared.made)) == (2, True)
    assert [state["reward"] for state in await harness.score_group(tasks, states)] == [1.0, 11.0]
    assert taskset.log == [("left", [True, 1])] * 2


async def test_what_a_group_shared_is_let_go_though_none_of_its_rollouts_can_be_scored() -> None:
    def use(shared: Shared) -> None:
        """Use it."""

    async def program(state: vf.State) -> None:
        await state.get_tools()["use"]()
        raise ZeroDivisionError

    def best(tasks: Any, states: Any) -> list[float]:
        return [1.0] * len(states)

    Shared.made.clear()
    tools = vf.Toolset([use], bindings={"use.shared": "objects.shared"}, objects={"shared": Shared}, scope="group")
    env = vf.Env(vf.Taskset(ROWS, rewards=[best], toolsets=[tools]), vf.Harness(program))
    rows = (await env.evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=2))["outputs"]
    assert [row["error"]["error"] for row in rows] == ["ZeroDivisionError"] * 2
    assert [shared.is_closed for shared in Shared.made] == [True]
