"""What published environments ask of the rollout API, through ``import verifiers as vf``: a test for each need, named after what holds.

The first part is hooks: whichever the documents name is what is called, overridden in a class or put on an object, plain or async.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.verifiers_compat.environments import ROW, Talk, look, right, single
from tests.verifiers_compat.models import Model, calling, evaluated, roles, rolled_out, texts
from verifiers_compat.alias import install, uninstall


@pytest.fixture(scope="module")
def vf() -> Iterator[Any]:
    """The package as published environments import it."""
    install()
    import verifiers

    yield verifiers
    uninstall()


# Hooks

ENVIRONMENT_HOOKS = (
    "add_model_response",
    "add_trajectory_step",
    "cleanup",
    "env_response",
    "get_model_response",
    "get_prompt_messages",
    "init_state",
    "is_completed",
    "render_completion",
    "rollout",
    "run_group",
    "setup_state",
)
WAYS = ("a plain method", "an async method", "a plain function put on the object", "an async function put on the object")


def replacing(cls: Any, name: str, way: str, calls: list[str], *args: Any, **kwargs: Any) -> Any:
    """Return an object of a class, one of whose hooks notes that it was called and goes on to the library's own."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return own(*args, **kwargs)

    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        result = own(*args, **kwargs)
        return await result if hasattr(result, "__await__") else result

    func = awaiting if "async" in way else plain
    if "put on" in way:
        made = cls(*args, **kwargs)
        own = getattr(made, name)
        setattr(made, name, func)
        return made
    own = getattr(cls, name)
    return type("Own", (cls,), {name: func})(*args, **kwargs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ENVIRONMENT_HOOKS)
async def test_a_replaced_hook_of_an_environment_is_what_is_called(vf: Any, name: str, way: str) -> None:
    calls: list[str] = []
    rubric = vf.Rubric(lambda completion: float(len(completion)))
    env = replacing(Talk, name, way, calls, dataset=[ROW], max_turns=2, rubric=rubric)
    (output,) = await evaluated(env, "1", "2")
    assert set(calls) == {name}
    assert (output["error"], output["reward"], output["stop_condition"]) == (None, 3.0, "max_turns_reached")
    assert roles(output["completion"]) == ["assistant", "user", "assistant"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_replaced_run_rollout_is_what_is_called_where_rollouts_are_scored_alone(vf: Any, way: str) -> None:
    calls: list[str] = []
    env = replacing(vf.SingleTurnEnv, "run_rollout", way, calls, dataset=[ROW], rubric=vf.Rubric(right))
    (output,) = await evaluated(env, "2", independent_scoring=True)
    assert (calls, output["reward"]) == (["run_rollout"], 1.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["call_tool", "update_tool_args"])
async def test_a_replaced_hook_of_tools_is_what_is_called(vf: Any, name: str, way: str) -> None:
    class Stateful(vf.StatefulToolEnv):
        def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
            return tool_args

    calls: list[str] = []
    env = replacing(Stateful, name, way, calls, dataset=[ROW], tools=[look])
    (output,) = await evaluated(env, calling(("look", {"key": "a"})), "done")
    assert (calls, texts(output["completion"])) == ([name], ["value of a"])


@pytest.mark.parametrize("of_group", [False, True], ids=["of the rubric that was given", "of env.rubric"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["score_group", "score_rollout", "cleanup", "teardown"])
async def test_a_replaced_hook_of_a_rubric_is_what_is_called(vf: Any, name: str, way: str, of_group: bool) -> None:
    calls: list[str] = []
    env = single(rubric=vf.Rubric(right) if of_group else replacing(vf.Rubric, name, way, calls, right))
    if of_group:
        env.rubric = replacing(vf.RubricGroup, name, way, calls, env.rubric.rubrics)
    (output,) = await evaluated(env, "2", independent_scoring=name == "score_rollout")
    await env.aclose()
    assert (calls, output["reward"], output["metrics"]["num_turns"]) == ([name], 1.0, 1.0)


async def test_hooks_of_environments_and_rubrics_can_be_made_tasks_of(vf: Any) -> None:
    ran: list[str] = []

    class Cleaning(vf.Rubric):
        @vf.cleanup
        async def clean_up(self, state: Any) -> None:
            await asyncio.sleep(0)
            ran.append("cleanup")

        @vf.teardown
        async def tear_down(self) -> None:
            await asyncio.sleep(0)
            ran.append("teardown")

    env, rubric = Talk(dataset=[ROW], max_turns=1), Cleaning()
    group = vf.RubricGroup([rubric, vf.Rubric()])
    state = await rolled_out(env, "1")
    assert await asyncio.create_task(env.setup_state(state)) in (None, state)
    assert roles(await asyncio.create_task(env.get_prompt_messages(state))) == ["user", "assistant", "user"]
    assert await asyncio.create_task(env.is_completed(state))
    for begun in (
        env.add_trajectory_step(state, state["trajectory"][0]),
        env.render_completion(state),
        env.cleanup(state),
        rubric.cleanup(state),
        group.cleanup(state),
        rubric.teardown(),
        group.teardown(),
        vf.Rubric().cleanup(state),
        vf.Rubric().teardown(),
        group.score_rollout(state),
        group.score_group([state]),
    ):
        assert await asyncio.create_task(begun) is None
    assert ran == ["cleanup", "cleanup", "teardown", "teardown"]


async def test_a_task_of_a_hook_that_waits_can_be_cancelled(vf: Any) -> None:
    class Waiting(vf.Rubric):
        @vf.cleanup
        async def clean_up(self, state: Any) -> None:
            began.set()
            await asyncio.Event().wait()

    began, state = asyncio.Event(), await rolled_out(single(), "2")
    task = asyncio.create_task(Waiting().cleanup(state))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before_it_ran = asyncio.create_task(Waiting().cleanup(state))
    before_it_ran.cancel()
    with pytest.raises(asyncio.CancelledError):
        await before_it_ran


async def test_env_cleanup_runs_the_handlers_by_priority_with_the_arguments_that_they_name(vf: Any) -> None:
    ran: list[Any] = []

    class Cleaning(Talk):
        @vf.cleanup
        async def last(self, state: vf.State) -> None:
            ran.append("last")

        @vf.cleanup(priority=5)
        async def after_rendering(self, state: vf.State, task: Any) -> None:
            ran.append((state["completion"], task["answer"]))

        @vf.cleanup(priority=200)
        def first(self, env: Any, state: vf.State) -> None:
            ran.append((env, state["completion"]))
            raise RuntimeError("this one fails")

    env = Cleaning(dataset=[ROW])
    state = await env.init_state(env.get_dataset()[0], Model(), "m")
    await env.cleanup(state)
    assert ran == [(env, None), ([], "2"), "last"]
    assert state["cleanup_errors"] == {"first": "RuntimeError('this one fails')"}


async def test_a_rubrics_own_cleanup_that_fails_stops_nothing(vf: Any) -> None:
    class Failing(vf.Rubric):
        def cleanup(self, state: vf.State) -> None:
            raise RuntimeError("this one fails")

    (output,) = await evaluated(single(rubric=vf.RubricGroup([Failing(), vf.Rubric(right)])), "2", state_columns=["cleanup_errors"])
    assert (output["reward"], output["error"]) == (1.0, None)
    assert list(output["cleanup_errors"].values()) == ["RuntimeError('this one fails')"]
