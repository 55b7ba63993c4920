"""One rollout's trouble stays its own: a `SystemExit` or `CancelledError` of an author's function ends that rollout alone, in both runs.

`KeyboardInterrupt`, and the cancellation of the task that plays, end the run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from vfgym import AssistantMessage, ModelAgent, Rubric, ScriptedAgent, ToolCall, aevaluate, evaluate
from vfgym.calls import ends_run, rollout_failure
from vfgym.clients import Client
from vfgym.state import State
from vfgym.testing import ScriptedClient

ROWS = [{"question": f"topic {index}"} for index in range(3)]
BAD = 1
"""The example whose rollout has the trouble."""
ERRORS: list[type[BaseException]] = [SystemExit, asyncio.CancelledError]
TOLD = {SystemExit: "SystemExit", asyncio.CancelledError: "CancelledError"}
PATIENCE = 60.0


def hook(where: str, otherwise: Any = None) -> Any:
    """Return a method that may have the trouble, and else returns `otherwise`, or the state where that is its name."""

    def method(self: Any, state: State, *_: Any) -> Any:
        return self.trouble(where, state, state if otherwise == "state" else otherwise)

    method.__name__ = where.replace(" ", "_")
    return method


class Troubled(vf.ToolEnv):
    """Has trouble in one hook, in one example, plainly or after waiting."""

    def __init__(self, where: str, error: type[BaseException], *, is_async: bool, **kwargs: Any) -> None:
        self.where, self.error, self.is_async = where, error, is_async
        self.cleaned: list[int] = []
        rubric = Rubric([self.rewarded])
        rubric.add_step_reward_func(self.step_rewarded, weight=0.0)
        super().__init__(**{"tools": [self.use], "dataset": ROWS, "max_turns": 2, "rubric": rubric, **kwargs})

    def trouble(self, where: str, state: State | None, otherwise: Any) -> Any:
        """Return `otherwise`, or raise: plainly, or where it is awaited."""

        def now() -> Any:
            if where == self.where and (state is None or state["example_id"] == BAD):
                raise self.error()
            return otherwise

        async def later() -> Any:
            await asyncio.sleep(0)
            return now()

        return later() if self.is_async else now()

    setup_state = hook("setup_state", "state")
    prepare = vfgym.setup(hook("setup"))
    is_enough = vfgym.stop(hook("stop", False))
    tidy = vfgym.cleanup(hook("cleanup"))
    bring_up_to_date = vfgym.update(hook("update"))

    def apply_action(self, message: Any, state: State) -> Any:
        return self.trouble("apply_action", state, None)

    @vfgym.cleanup(priority=10)
    def clean(self, state: State) -> None:
        self.cleaned.append(state["example_id"])

    def rewarded(self, state: State) -> Any:
        return self.trouble("reward", state, 1.0)

    def step_rewarded(self, state: State, step: Any) -> Any:
        return self.trouble("step reward", state, 0.0)

    def use(self, example: int) -> Any:
        """Use it."""
        return self.trouble("tool", None if example == BAD else State(input={"example_id": example}), "used")


def calls(example: int) -> list[Any]:
    return [AssistantMessage(None, tool_calls=[ToolCall("1", "use", f'{{"example": {example}}}')]), "done"]


class ByTopic(Client):
    """Answers each example with calls of its own."""

    async def get_response(self, prompt: Any, model: str, *args: Any, **kwargs: Any) -> Any:
        script = ScriptedClient(calls(kwargs["state"]["example_id"]))
        return await script.get_response(prompt, model, *args, **kwargs)


async def evaluated(env: Any) -> list[Any]:
    agent = ScriptedAgent({index: calls(index) for index in range(3)})
    return list((await aevaluate(env, agent, state_columns=["cleanup_errors"], progress=False))["outputs"])


async def generated(env: Any) -> list[Any]:
    rows = (await env.generate(ROWS, ByTopic(), "m", state_columns=["cleanup_errors"]))["outputs"]
    return sorted(rows, key=lambda row: row["example_id"])


RUNS: list[Callable[[Any], Awaitable[list[Any]]]] = [evaluated, generated]
HOOKS = ["setup_state", "setup", "apply_action", "stop", "update", "reward", "step reward"]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("where", [*HOOKS, "cleanup", "tool"])
async def test_what_an_authors_function_raises_concerns_its_rollout_alone(
    where: str, error: type[BaseException], is_async: bool, run: Callable[[Any], Awaitable[list[Any]]]
) -> None:
    """A hook or reward function ends it, a cleanup handler is recorded, and what a tool raises is told to the model."""
    env = Troubled(where, error, is_async=is_async)
    rows = await run(env)
    ends = where in HOOKS
    assert [(row["error"] is None, row["reward"]) for row in rows] == [(True, 1.0), (not ends, float(not ends)), (True, 1.0)]
    assert not ends or TOLD[error] in rows[BAD]["error"]["error_chain_repr"]
    assert ends or [bool(row["cleanup_errors"]) for row in rows] == [False, where == "cleanup", False]
    assert sorted(env.cleaned) == [0, 1, 2]
    if where == "tool":
        assert [TOLD[error] in row["completion"][1]["content"] for row in rows] == [False, True, False]


class OwnLoop(vf.Environment):
    """Owns its loop, and breaks off in one example."""

    error: type[BaseException] = SystemExit

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> Any:
        state = await self.init_state(input, client, model, sampling_args)
        await self.get_model_response(state, state["prompt"])
        if state["example_id"] == BAD:
            raise self.error()
        return state


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", ERRORS)
async def test_what_an_agent_a_model_or_an_own_loop_raises_ends_its_rollout_alone(error: type[BaseException], is_async: bool) -> None:
    def agent(observation: Any, info: dict[str, Any]) -> Any:
        if not is_async and info["example_id"] == BAD:
            raise error()
        return asked(info["example_id"]) if is_async else "yes"

    async def asked(example_id: int) -> str:
        await asyncio.sleep(0)
        if example_id == BAD:
            raise error()
        return "yes"

    class Exits(ByTopic):
        async def get_response(self, prompt: Any, model: str, *args: Any, **kwargs: Any) -> Any:
            await asked(kwargs["state"]["example_id"])
            return await super().get_response(prompt, model, *args, **kwargs)

    env, own = Troubled("nowhere", error, is_async=False), OwnLoop(dataset=ROWS)
    own.error = error
    for results in (
        await aevaluate(env, agent, progress=False),
        await aevaluate(env, ModelAgent(Exits(), "m"), progress=False),
        await env.generate(ROWS, Exits(), "m"),
        await aevaluate(own, lambda *_: "yes", progress=False),
        await own.generate(ROWS, ScriptedClient(["yes"]), "m"),
    ):
        rows = sorted(results["outputs"], key=lambda row: row["example_id"])
        assert [row["error"] is None for row in rows] == [True, False, True]
        assert TOLD[error] in rows[BAD]["error"]["error_chain_repr"]
    assert sorted(env.cleaned) == sorted([0, 1, 2] * 3)


async def test_strict_raises_it_as_the_runs_error() -> None:
    with pytest.raises(RuntimeError, match=r"SystemExit\(\) was raised"):
        await aevaluate(Troubled("setup_state", SystemExit, is_async=True), lambda *_: "yes", strict=True, progress=False)


# Groups


@pytest.mark.parametrize("runs_apart", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", ERRORS)
async def test_a_member_of_a_group_whose_reward_function_exits_is_alone_with_that(
    error: type[BaseException], is_async: bool, runs_apart: bool
) -> None:
    async def later(state: State) -> float:
        await asyncio.sleep(0)
        return now(state)

    def now(state: State) -> float:
        if state["completion"][-1]["content"] == "bad":
            raise error()
        return 1.0

    def rewarded(state: State) -> Any:
        return later(state) if is_async else now(state)

    def together(states: list[State]) -> list[float]:
        return [10.0 for _ in states]

    class Apart(Rubric):
        def scoring_steps(self, state: State) -> Any:
            return super().scoring_steps(state)

    class Says(ByTopic):
        async def get_response(self, prompt: Any, model: str, *args: Any, **kwargs: Any) -> Any:
            return await ScriptedClient([next(answers)]).get_response(prompt, model, **kwargs)

    env = vf.SingleTurnEnv(dataset=ROWS[:1], rubric=(Apart if runs_apart else Rubric)([rewarded, together]))
    answers = iter(["good", "bad", "good"] * 2)
    evaluated = await aevaluate(env, lambda *_: next(answers), rollouts_per_example=3, progress=False)
    for rows in (evaluated["outputs"], (await env.generate(ROWS[:1] * 3, Says(), "m"))["outputs"]):
        bad, *good = sorted(rows, key=lambda row: row["completion"][-1]["content"])
        assert TOLD[error] in bad["error"]["error_chain_repr"]
        assert [(row["error"], row["reward"]) for row in good] == [(None, 11.0)] * 2


# Stepping oneself


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("where", ["apply_action", "stop", "reward", "step reward"])
def test_step_cleans_up_once_and_raises_it(
    where: str, error: type[BaseException], is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    env = Troubled(where, error, is_async=is_async)

    def play() -> None:
        env.reset(options={"example_id": BAD})
        env.step("done")

    with pytest.raises(error):
        play()
    assert env.cleaned == [BAD]
    assert "went through" not in caplog.text
    env.where = "nowhere"
    env.reset(options={"example_id": 0})
    assert env.step("done").reward == 1.0


# What does end the run


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("where", ["setup_state", "reward", "cleanup"])
def test_an_interruption_that_a_function_raises_ends_the_run(where: str, is_async: bool) -> None:
    env = Troubled(where, KeyboardInterrupt, is_async=is_async)
    rows: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        evaluate(env, ScriptedAgent(["done"]), max_concurrent=1, on_progress=lambda row, _: rows.append(row), progress=False)
    with pytest.raises(KeyboardInterrupt):
        env.generate_sync(ROWS, ByTopic(), "m", max_concurrent=1, on_progress=lambda _, new, __: rows.extend(new))
    assert [row["example_id"] for row in rows] == [0, 0]


@pytest.mark.parametrize("run", [0, 1])
async def test_cancelling_a_run_ends_it_though_functions_have_limits_of_their_own(run: int) -> None:
    """`asyncio.timeout` and task groups cancel the very task that plays, and take that back: only what is left is the run's."""
    waiting = asyncio.Event()
    ended: list[int] = []

    async def answer(state: Any) -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(PATIENCE)
        except TimeoutError:
            pass
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(PATIENCE))
                raise LookupError
        except* LookupError:
            pass
        if state == BAD:
            raise asyncio.CancelledError
        if state == 2:
            waiting.set()
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                await asyncio.sleep(0.01)
                ended.append(state)
        return "yes"

    class Limited(ByTopic):
        async def get_response(self, prompt: Any, model: str, *args: Any, **kwargs: Any) -> Any:
            await answer(kwargs["state"]["example_id"])
            return await super().get_response(prompt, model, *args, **kwargs)

    env = Troubled("nowhere", SystemExit, is_async=False)
    rows: list[Any] = []
    if run == 0:
        runs: Any = aevaluate(
            env, lambda _, info: answer(info["example_id"]), progress=False, on_progress=lambda row, _: rows.append(row), max_concurrent=1
        )
    else:
        runs = env.generate(ROWS, Limited(), "m", max_concurrent=1, on_progress=lambda _, new, __: rows.extend(new))
    task = asyncio.ensure_future(runs)
    await asyncio.wait_for(waiting.wait(), PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [row["error"] is None for row in rows] == [True, False]
    assert ended == [2]
    assert sorted(env.cleaned) == [0, 1, 2]


# The rule


async def test_what_ends_a_run() -> None:
    assert [ends_run(error()) for error in (ValueError, SystemExit, asyncio.CancelledError)] == [False] * 3
    assert [ends_run(error()) for error in (KeyboardInterrupt, GeneratorExit)] == [True] * 2
    told = rollout_failure(SystemExit("bye"))
    assert (repr(told), repr(told.__cause__)) == ("RuntimeError(\"SystemExit('bye') was raised\")", "SystemExit('bye')")
    error = ValueError()
    assert rollout_failure(error) is error
    with pytest.raises(KeyboardInterrupt):
        rollout_failure(KeyboardInterrupt())

    async def cancelled() -> bool:
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError as raised:
            return ends_run(raised)
        return False

    task = asyncio.ensure_future(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    assert await task


def test_teardown_handlers_that_exit_keep_no_others_from_running(caplog: pytest.LogCaptureFixture) -> None:
    torn_down = []

    class Leaving(vfgym.SingleTurnEnv):
        @vfgym.teardown(priority=1)
        def leave(self) -> None:
            raise SystemExit

        @vfgym.teardown
        def stay(self) -> None:
            torn_down.append(True)

    with caplog.at_level(logging.ERROR):
        Leaving(ROWS).close()
    assert torn_down == [True]
    assert "handler leave failed" in caplog.text
