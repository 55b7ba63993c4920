"""`MultiTurnEnv` and `SingleTurnEnv`: how rollouts end, and hooks that an author replaces."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROW, ROWS, WAYS, Talk, look, replacing, right, single
from tests.verifiers_compat.models import Model, evaluated, response, roles, rolled_out
from vfgym.errors import HookMissing

HOOKS = "add_model_response add_trajectory_step cleanup env_response get_model_response get_prompt_messages init_state is_completed"
WRITTEN = ("env_response", "get_prompt_messages", "rollout")
HOOKS += " render_completion rollout run_group setup_state"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HOOKS.split())
async def test_a_replaced_hook_of_an_environment_is_what_is_called(name: str, way: str) -> None:
    calls: list[str] = []
    rubric = vf.Rubric(lambda completion: float(len(completion)))
    (output,) = await evaluated(replacing(Talk, name, way, calls, dataset=[ROW], max_turns=2, rubric=rubric), "1", "2")
    assert set(calls) == {name}
    assert (output["error"], output["reward"], output["stop_condition"]) == (None, 3.0, "max_turns_reached")
    assert roles(output["completion"]) == ["assistant", "user", "assistant"]


@pytest.mark.parametrize("names", [(), *((name,) for name in WRITTEN), WRITTEN])
def test_one_of_the_hooks_that_make_turns_must_be_written(names: tuple[str, ...]) -> None:
    written = type("Written", (vf.MultiTurnEnv,), {name: lambda self, *args: None for name in names})
    with contextlib.nullcontext() if names else pytest.raises(HookMissing, match=r"Written must write env_response\(messages, state\)"):
        written(dataset=[ROW])


@pytest.mark.parametrize("way", WAYS)
async def test_a_replaced_run_rollout_is_what_is_called_where_rollouts_are_scored_alone(way: str) -> None:
    calls: list[str] = []
    env = replacing(vf.SingleTurnEnv, "run_rollout", way, calls, dataset=[ROW], rubric=vf.Rubric(right))
    (output,) = await evaluated(env, "2", independent_scoring=True)
    assert (calls, output["reward"]) == (["run_rollout"], 1.0)


def test_hooks_that_are_put_on_an_environment_are_called_where_it_is_stepped_and_taken_off_again() -> None:
    async def env_response(messages: Any, state: Any) -> Any:
        return [{"role": "user", "content": "put on"}]

    async def rollout(*args: Any) -> Any:
        calls.append("rollout")
        return await own_rollout(*args)

    env, calls = Talk(dataset=[ROW], max_turns=2), []
    for _ in range(2):
        env.reset()
        assert env.step("1")[0][-1].content == "turn 1"
        env.env_response = env_response
        env.reset()
        assert env.step("1")[0][-1].content == "put on"
        del env.env_response
    own_rollout, env.rollout = env.rollout, rollout
    env.reset()
    assert [env.step("1").terminated, env.step("1").truncated, calls] == [False, True, ["rollout"]]
    env.close()


async def test_env_cleanup_runs_the_handlers_by_priority_with_the_arguments_that_they_name() -> None:
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


async def test_hooks_of_environments_and_rubrics_can_be_made_tasks_of() -> None:
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
    begun = [env.add_trajectory_step(state, state["trajectory"][0]), env.render_completion(state), env.cleanup(state)]
    for each in (rubric, group, vf.Rubric()):
        begun += [each.cleanup(state), each.teardown()]
    for each in (*begun, group.score_rollout(state), group.score_group([state])):
        assert await asyncio.create_task(each) is None
    assert ran == ["cleanup", "teardown", "cleanup", "teardown"]


async def test_a_state_made_by_hand_can_be_asked_whether_it_is_completed() -> None:
    def by_hand(*steps: dict[str, Any]) -> Any:
        return vf.State(trajectory=list(steps), prompt=[], timing=vf.RolloutTiming())

    step = {"prompt": [], "completion": [vf.AssistantMessage(content="done")], "is_truncated": True}
    limited, called = by_hand(step, step), by_hand(step)
    assert not await Talk(dataset=[ROW], max_turns=2).is_completed(by_hand())
    assert await Talk(dataset=[ROW], max_turns=2).is_completed(limited)
    assert await vf.ToolEnv(dataset=[ROW], tools=[look]).is_completed(called)
    assert (limited["stop_condition"], limited["is_truncated"], called["stop_condition"]) == ("max_turns_reached", True, "no_tools_called")


async def test_a_turn_of_a_loop_written_by_hand_is_recorded_by_an_async_hook_too() -> None:
    class ByHand(Talk):
        async def add_trajectory_step(self, state: vf.State, trajectory_step: Any) -> None:
            await asyncio.sleep(0)
            trajectory_step["extras"]["noted"] = True
            state["trajectory"].append(trajectory_step)

    env = ByHand(dataset=ROWS)
    state = await env.init_state(env.get_dataset()[0], Model(), "m")
    await env.add_model_response(state, state["prompt"], response("x"))
    [step] = state["trajectory"]
    assert (step["extras"], step["completion"][0].content, list(step["prompt"])) == ({"noted": True}, "x", list(state["prompt"]))


class Scripted(Talk):
    """Raises what the model says."""

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        if messages[-1]["content"] == "tool error":
            raise vf.ToolError("broken") from ValueError("deep")
        return await super().env_response(messages, state, **kwargs)


@pytest.mark.parametrize(
    ("env", "answers", "expected"),
    [
        (single, ["2"], (True, False, "max_turns_reached", None)),
        (single, [response("2", finish_reason="length")], (True, True, "max_turns_reached", None)),
        (lambda: single(max_seq_len=3), [response("2", tokens=(2, 2))], (True, True, "max_turns_reached", None)),
        (lambda: vf.ToolEnv(tools=[look], dataset=[ROW]), ["done"], (True, False, "no_tools_called", None)),
        (lambda: vf.ToolEnv(tools=[look], dataset=[ROW], max_turns=1), ["done"], (True, False, "max_turns_reached", None)),
        (lambda: Scripted(dataset=[ROW]), ["tool error"], (True, False, "has_error", "ToolError")),
        (lambda: Scripted(dataset=[ROW]), [response("tool error", finish_reason="length")], (True, True, "has_error", "ToolError")),
    ],
    ids=["single turn", "cut", "cut by max_seq_len", "no tools called", "ties go by name", "error", "error after a cut turn"],
)
async def test_how_a_rollout_ends(env: Any, answers: list[Any], expected: tuple[Any, ...]) -> None:
    state = await rolled_out(env(), *answers)
    error = state["error"] and type(state["error"]).__name__
    assert (state["is_completed"], state["is_truncated"], state["stop_condition"], error) == expected


@pytest.mark.parametrize(("finish_reason", "is_truncated"), [("stop", False), ("length", True)])
async def test_a_timeout_keeps_what_was_said_and_whether_an_earlier_turn_was_cut(finish_reason: str, is_truncated: bool) -> None:
    async def hang() -> Any:
        await asyncio.Event().wait()

    env = Talk(dataset=[ROW], timeout_seconds=0.05)
    client = Model(lambda number, state: hang() if number else response("first", finish_reason=finish_reason))
    state = await env.rollout(env.get_dataset()[0], client, "m")
    assert (state["stop_condition"], state["timed_out"], state["error"]) == ("timeout_reached", True, None)
    assert (state["is_completed"], state["is_truncated"], state["completion"][0]["content"]) == (True, is_truncated, "first")


async def test_a_rollout_with_an_error_is_scored_all_the_same() -> None:
    results = await Scripted(dataset=[ROW], rubric=vf.Rubric(lambda: 1.0)).evaluate(Model(lambda *_: "tool error"), "m")
    (output,) = results["outputs"]
    assert (output["reward"], results["metadata"]["avg_error"]) == (1.0, 1.0)
    assert output["error"]["error_chain_str"] == output["long_error_chain"] == "ToolError -> ValueError"
    assert output["error_chain"] == output["error"]["error_chain_repr"]
