"""One machine for sync and async callers: drivers, the shared background loop, the bridge, and both faces in every setting."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import logging
import threading
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import pytest

from tests.interruptions import ctrl_c
from tests.programs import run_python
from vfgym import MultiTurnEnv, Rubric, State, ToolEnv, UserMessage, cleanup
from vfgym.aio.background import wait
from vfgym.aio.bridge import bridge
from vfgym.aio.steps import Pending, Steps, Together, all_of, begin, begin_to_end, eager, run_async, run_each, run_handlers, run_sync
from vfgym.aio.threads import Worker, on_thread
from vfgym.calls import Ready, is_awaitable
from vfgym.errors import ResetNeeded, WouldDeadlock
from vfgym.messages import Message

name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def failing(error: BaseException) -> Any:
    await asyncio.sleep(0)
    raise error


# Steps and their drivers


def adding(*values: Any) -> Steps[list[Any]]:
    """Collect what the awaitables among `values` give; a LookupError stands for itself."""
    collected = []
    for value in values:
        try:
            collected.append((yield value) if is_awaitable(value) else value)
        except LookupError as error:
            collected.append(repr(error))
    return collected


EXPECTED = [1, 2, "KeyError('x')", 4, []]


def sample() -> Steps[list[Any]]:
    return adding(1, later(2), failing(KeyError("x")), Ready(4), Ready([]))


def test_the_sync_driver_gives_results_and_raises_errors_where_they_are_waited_for() -> None:
    assert run_sync(sample()) == EXPECTED
    with pytest.raises(ZeroDivisionError):
        run_sync(adding(failing(ZeroDivisionError())))
    assert run_sync(adding()) == []


async def test_the_async_driver_does_the_same() -> None:
    assert await run_async(sample()) == EXPECTED
    with pytest.raises(ZeroDivisionError):
        await run_async(adding(failing(ZeroDivisionError())))
    assert await begin(sample()) == EXPECTED


async def test_what_needs_no_waiting_is_there_at_once_and_can_be_awaited_too() -> None:
    done = begin(adding(1, Ready(2)))
    assert done == [1, 2]
    assert await done == [1, 2]

    @eager
    def double(value: int) -> Steps[int]:
        return 2 * (yield Ready(value))

    assert double(4).value == 8
    assert await double(4) == 8


async def failing_step(word: str, ended: list[str]) -> None:
    ended.append(word)
    raise ValueError(word)


@pytest.mark.parametrize("words", [["a", "b", "c"], ["c", "b", "a"]])
def test_steps_after_those_that_failed_are_run_too_and_what_the_first_raised_is_raised(words: list[str]) -> None:
    ended: list[str] = []

    def steps(word: str) -> Steps[None]:
        yield failing_step(word, ended)

    with pytest.raises(ValueError, match=words[0]):
        run_sync(run_each(steps(word) for word in words))
    assert ended == words


async def test_gathering_lets_all_of_them_end_and_puts_errors_in_their_places() -> None:
    error = ValueError("x")
    assert await Together([later(1), failing(error), later(3)]) == [1, error, 3]


def test_handlers_are_all_called_and_what_ends_the_run_is_raised_at_last(caplog: pytest.LogCaptureFixture) -> None:
    called: list[Any] = []

    def handler(name: str, error: BaseException | None, is_async: bool) -> tuple[str, Callable[..., Any]]:
        def call(*args: Any) -> Any:
            called.append((name, args))
            if is_async:
                return later(None) if error is None else failing(error)
            if error is not None:
                raise error
            return Ready(None)

        return name, call

    errors: dict[str, Exception] = {}
    failures = {"a": ValueError("a"), "b": KeyError("b"), "c": KeyboardInterrupt(), "d": SystemExit(1), "e": None}
    handlers = [handler(name, error, name in "bde") for name, error in failures.items()]
    with pytest.raises(KeyboardInterrupt):
        run_sync(run_handlers(handlers, 1, 2, errors=errors))
    assert called == [(name, (1, 2)) for name in failures]
    assert (list(errors), errors["a"], errors["b"]) == (["a", "b", "d"], failures["a"], failures["b"])
    assert [record.args for record in caplog.records] == [("a",), ("b",), ("d",)]


async def test_all_of_them_run_together_and_the_first_that_raises_cancels_the_others() -> None:
    ended: list[str] = []

    async def one(word: str, error: Exception | None, waits: asyncio.Event | None = None) -> None:
        try:
            await (asyncio.sleep(0) if waits is None else waits.wait())
            if error:
                raise error
        finally:
            ended.append(word)

    await all_of([])
    await all_of(one(word, None) for word in "ab")
    with pytest.raises(KeyError):
        await all_of([one("c", None, asyncio.Event()), one("d", KeyError("x"))])
    assert ended == ["a", "b", "d", "c"]


@pytest.mark.parametrize("has_begun", [False, True])
def test_what_is_pending_can_be_given_up(has_begun: bool) -> None:
    ended: list[str] = []

    def steps(awaitable: Any) -> Steps[None]:
        try:
            yield awaitable
        finally:
            ended.append("steps")

    for give_up in ("close", "throw"):
        coroutine = later(1)
        pending = begin(steps(coroutine))
        assert isinstance(pending, Pending)
        if has_begun:
            pending.send(None)
        if give_up == "close":
            pending.close()
        else:
            with pytest.raises(KeyError):
                pending.throw(KeyError("x"))
        assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
    assert ended == ["steps"] * 2


async def test_steps_without_a_result_are_done_or_pending() -> None:
    seen: list[Any] = []

    def steps(*awaitables: Any) -> Steps[None]:
        for awaitable in awaitables:
            seen.append((yield awaitable))

    assert begin_to_end(steps()) is None
    assert begin_to_end(steps(Ready(0), Ready([]))) is None
    pending = begin_to_end(steps(Ready(1), later(2), Ready(3)))
    assert seen == [0, [], 1]
    assert pending is not None
    await pending
    assert seen == [0, [], 1, 2, 3]


def test_several_that_are_given_up_are_closed() -> None:
    coroutines = [later(1), later(2)]
    Together(coroutines).close()
    assert {inspect.getcoroutinestate(each) for each in coroutines} == {inspect.CORO_CLOSED}


# Errors keep their lines


def plain_culprit(kind: type[Exception]) -> Any:
    raise kind("the line to find")


async def async_culprit(kind: type[Exception]) -> Any:
    await asyncio.sleep(0)
    raise kind("the line to find")


def on_worker(kind: type[Exception]) -> Any:
    worker = Worker()
    try:
        return wait(worker.run(plain_culprit, kind))
    finally:
        worker.close()


WAYS: dict[str, Callable[[type[Exception]], Any]] = {
    "waiting": lambda kind: wait(async_culprit(kind)),
    "waiting for a thread": lambda kind: wait(on_thread(plain_culprit, kind)),
    "waiting for a worker": on_worker,
    "driven": lambda kind: run_sync(giving(async_culprit(kind))),
    "driven, on a thread": lambda kind: run_sync(giving(on_thread(plain_culprit, kind))),
    "begun": lambda kind: wait(begin(giving(async_culprit(kind)))),
}


def giving(awaitable: Any) -> Steps[Any]:
    return (yield awaitable)


@pytest.mark.parametrize("kind", [KeyError, TimeoutError, StopIteration])
@pytest.mark.parametrize("is_bridged", [False, True], ids=["plain", "bridged"])
@pytest.mark.parametrize("way", WAYS)
def test_an_error_keeps_the_line_it_comes_from(way: str, is_bridged: bool, kind: type[Exception]) -> None:
    """However many threads, loops, generators and greenlets it went through."""
    with pytest.raises((kind, RuntimeError)) as caught:  # a coroutine cannot raise StopIteration
        asyncio.run(bridge(WAYS[way], kind)) if is_bridged else WAYS[way](kind)
    error = caught.value if isinstance(caught.value, kind) else caught.value.__cause__
    assert isinstance(error, kind)
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert (last.filename, last.line) == (__file__, 'raise kind("the line to find")')


# Environments, whatever their hooks


class Rated(MultiTurnEnv):
    """Three turns with a random number each."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(dataset=[{"question": f"{index}"} for index in range(4)], max_turns=3, rubric=self.rewards(), **kwargs)
        self.cleaned = 0

    def rewards(self) -> Rubric:
        def final(completion: list[Message]) -> float:
            return len(completion)

        def each(step: Any) -> float:
            return len(step["completion"][0]["content"])

        rubric = Rubric(final)
        rubric.add_step_reward_func(each)
        return rubric

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage(f"{messages[-1]['content']} {state.rng.integers(1000)}")]

    @cleanup
    def count(self, state: State) -> None:
        self.cleaned += 1


class AsyncRated(Rated):
    """The same with everything async."""

    def rewards(self) -> Rubric:
        async def final(completion: list[Message]) -> float:
            return await later(len(completion))

        async def each(step: Any) -> float:
            return await later(len(step["completion"][0]["content"]))

        rubric = Rubric(final)
        rubric.add_step_reward_func(each)
        return rubric

    async def setup_state(self, state: State) -> None:
        await later(super().setup_state(state))

    async def env_response(self, messages: list[Message], state: State) -> Any:
        return await later(super().env_response(messages, state))

    async def render_completion(self, state: State) -> None:
        await later(await super().render_completion(state))

    @cleanup
    async def count(self, state: State) -> None:
        await asyncio.sleep(0)
        self.cleaned += 1


class Tools(ToolEnv):
    """An async tool and a plain one."""

    def __init__(self) -> None:
        super().__init__(
            tools=[self.slow, self.quick], dataset=[{"question": "?"}], max_turns=3, rubric=Rubric(lambda completion: len(completion))
        )
        self.cleaned = 0

    async def slow(self, word: str) -> str:
        """Return a word."""
        return str(await later(word))

    def quick(self, word: str) -> str:
        """Return a word."""
        return word

    @cleanup
    def count(self, state: State) -> None:
        self.cleaned += 1


CALLS = [{"id": tool, "function": {"name": tool, "arguments": '{"word": "hi"}'}} for tool in ("slow", "quick")]
CALLING = {"role": "assistant", "content": None, "tool_calls": CALLS}
SCRIPTS: dict[type[Any], list[Any]] = {
    Rated: ["a", "bb", "ccc"],
    AsyncRated: ["a", "bb", "ccc"],
    Tools: [CALLING, CALLING, "done"],
}
KINDS = pytest.mark.parametrize("kind", list(SCRIPTS))

COMPARED = ("input", "completion", "reward", "metrics", "stop_condition", "is_completed", "is_truncated", "error", "final_env_response")


def summary(env: Any, outcomes: list[Any]) -> dict[str, Any]:
    """Return what an episode must have in common however it was stepped; ids and clocks are left out."""
    steps = [{key: step[key] for key in step if key not in ("response", "trajectory_id")} for step in env.state["trajectory"]]
    return {"outcomes": outcomes, "trajectory": steps, "cleaned": env.cleaned, **{key: env.state[key] for key in COMPARED}}


def play(env: Any) -> dict[str, Any]:
    outcomes = [env.reset(seed=1), *(env.step(action) for action in SCRIPTS[type(env)])]
    return summary(env, outcomes)


async def aplay(env: Any) -> dict[str, Any]:
    outcomes = [await env.areset(seed=1)]
    for action in SCRIPTS[type(env)]:
        outcomes.append(await env.astep(action))
    return summary(env, outcomes)


@KINDS
def test_step_and_astep_play_the_same_episode(kind: type[Any]) -> None:
    assert play(kind()) == asyncio.run(aplay(kind()))


def test_plain_and_async_hooks_play_the_same_episode() -> None:
    plain = play(Rated())
    assert plain["reward"] == 5.0 + 6.0
    assert plain["cleaned"] == 1
    assert play(AsyncRated()) == plain


@KINDS
async def test_step_works_in_a_running_event_loop(kind: type[Any]) -> None:
    """As in a Jupyter cell."""
    assert play(kind()) == await aplay(kind())


@KINDS
async def test_the_two_faces_may_be_mixed_in_one_episode(kind: type[Any]) -> None:
    env = kind()
    script = SCRIPTS[kind]
    outcomes = [env.reset(seed=1), await env.astep(script[0]), env.step(script[1])]
    outcomes.append(await asyncio.to_thread(env.step, script[2]))
    assert summary(env, outcomes) == play(kind())


@KINDS
def test_episodes_can_be_stepped_from_several_threads_at_once(kind: type[Any]) -> None:
    expected = play(kind())["outcomes"]
    definition = kind()

    def player(_: int) -> list[Any]:
        fork = definition.fork()
        return [fork.reset(seed=1), *(fork.step(action) for action in SCRIPTS[kind])]

    with ThreadPoolExecutor(8) as pool:
        assert all(outcomes == expected for outcomes in pool.map(player, range(32)))
    assert definition.cleaned == 32


class AsyncStepRewards(Rated):
    """Only a step reward function is async."""

    def rewards(self) -> Rubric:
        async def each(step: Any) -> float:
            return float(await later(1.0))

        rubric = Rubric()
        rubric.add_step_reward_func(each)
        return rubric


class AsyncFinalReward(Rated):
    """Only a reward function is async."""

    def rewards(self) -> Rubric:
        async def final(completion: list[Message]) -> float:
            return float(await later(1.0))

        return Rubric(final)


class AsyncResponse(Rated):
    """Only its environment's response is async."""

    async def env_response(self, messages: list[Message], state: State) -> Any:
        return await later(super().env_response(messages, state))


class AsyncCleanup(Rated):
    """Only a cleanup handler is async."""

    @cleanup
    async def tidy(self, state: State) -> None:
        await asyncio.sleep(0)


SCRIPTS |= dict.fromkeys((AsyncStepRewards, AsyncFinalReward, AsyncResponse, AsyncCleanup), SCRIPTS[Rated])


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("kind", [AsyncRated, AsyncStepRewards, AsyncFinalReward, AsyncResponse, AsyncCleanup, Tools])
def test_a_sync_step_that_must_wait_on_the_background_loop_itself_raises(kind: type[Any]) -> None:
    """Whatever it must wait for; it is not an error of the episode. The environment can still be used from elsewhere."""
    env = kind()

    async def on_the_loop() -> None:
        with pytest.raises(WouldDeadlock, match="astep"):
            play(env)

    try:
        logging.disable()  # a log record would keep the coroutines alive that the next test looks for
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            wait(on_the_loop())
            gc.collect()
    finally:
        logging.disable(logging.NOTSET)
    assert play(env)["outcomes"][-1].info["stop_condition"]


def test_what_would_deadlock_leaves_no_coroutine_behind_that_was_never_awaited() -> None:
    program = """
        import asyncio
        import vfgym
        from vfgym.aio.background import wait

        class Rated(vfgym.MultiTurnEnv):
            async def env_response(self, messages, state):
                return "on"

            async def render_completion(self, state):
                await super().render_completion(state)

            @vfgym.cleanup
            async def tidy(self, state):
                await asyncio.sleep(0)

        env = Rated(dataset=[{"question": "?"}])
        env.reset(seed=0)

        async def on_the_loop():
            try:
                env.step("x")
            except vfgym.errors.WouldDeadlock:
                return "raised"

        print(wait(on_the_loop()))
    """
    done = run_python(program)
    assert (done.stdout, done.returncode) == ("raised\n", 0)
    assert "never awaited" not in done.stderr, done.stderr


def test_plain_hooks_step_on_the_background_loop_like_anywhere() -> None:
    async def on_the_loop() -> dict[str, Any]:
        return play(Rated())

    assert wait(on_the_loop()) == play(Rated())


def test_plain_hooks_start_no_thread() -> None:
    program = """
        import threading
        import vfgym

        class Rated(vfgym.MultiTurnEnv):
            def env_response(self, messages, state):
                return "on"

        def add(a: int, b: int) -> int:
            return a + b

        rows = [{"question": "?"}]
        rubric = vfgym.Rubric(lambda completion: 1.0)
        function = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
        call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]}
        for env in (vfgym.SingleTurnEnv(rows, rubric=rubric), Rated(dataset=rows, max_turns=2), vfgym.ToolEnv(tools=[add], dataset=rows)):
            env.reset(seed=0)
            for action in (call, "x"):
                outcome = env.step(action)
                if outcome.terminated or outcome.truncated:
                    break
            assert outcome.terminated or outcome.truncated
            env.reset()
            env.truncate()
            env.close()
        assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
    """
    done = run_python(program)
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("kind", [Rated, AsyncRated])
async def test_stock_wrappers_are_stepped_from_async_code_without_threads(kind: Callable[..., Rated]) -> None:
    """Many episodes at once through wrappers that know nothing of async."""
    definition = kind()
    threads = threading.active_count()

    def episode(index: int) -> float:
        env = gym.wrappers.TransformReward(
            gym.wrappers.RecordEpisodeStatistics(gym.wrappers.TimeLimit(definition.fork(), 2)), lambda reward: 10 * reward
        )
        env.reset(seed=index)
        env.step("a")
        _, reward, _, truncated, info = env.step("bb")
        assert truncated
        assert info["episode"]["l"] == 2
        return float(reward)

    assert await asyncio.gather(*(bridge(episode, index) for index in range(100))) == [20.0] * 100
    assert threading.active_count() == threads


async def test_cancelling_a_bridged_step_cleans_up_once() -> None:
    class Stuck(Rated):
        async def env_response(self, messages: list[Message], state: State) -> Any:
            await asyncio.Event().wait()

    env = Stuck()
    wrapped = gym.wrappers.TimeLimit(env, 5)
    await bridge(wrapped.reset, seed=0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bridge(wrapped.step, "a"), 0.01)
    assert env.cleaned == 1
    with pytest.raises(ResetNeeded):
        await bridge(wrapped.step, "b")


def test_ctrl_c_in_a_step_waits_for_a_slow_finally_before_it_cleans_up() -> None:
    """`KeyboardInterrupt` arrives when the hook that was running has ended, and cleanup comes after it."""
    ended: list[str] = []

    class Slow(Rated):
        async def env_response(self, messages: list[Message], state: State) -> Any:
            try:
                interrupt()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.3)
                ended.append("hook")

        @cleanup
        async def leave(self, state: State) -> None:
            ended.append("cleanup")

    env = Slow()
    env.reset(seed=0)
    with ctrl_c() as interrupt, pytest.raises(KeyboardInterrupt):
        env.step("a")
    assert ended == ["hook", "cleanup"]
    with pytest.raises(ResetNeeded):
        env.step("b")


def test_hooks_see_the_context_variables_of_whoever_steps() -> None:
    class Named(Rated):
        async def env_response(self, messages: list[Message], state: State) -> Any:
            await asyncio.sleep(0)
            return name.get()

    env = Named()
    env.reset(seed=0)
    token = name.set("ann")
    try:
        assert env.step("who?").observation[-1]["content"] == "ann"
    finally:
        name.reset(token)
