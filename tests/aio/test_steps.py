"""One machine for sync and async callers: drivers, the shared background loop, the bridge, and both faces in every setting."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import threading
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import pytest

from tests.environments import AsyncRandomTalk, RandomTalk
from tests.interruptions import ctrl_c
from tests.programs import run_python
from vfgym import Rubric, State, cleanup
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

    assert double(4).value == double(value=4).value == 8
    assert await double(4) == 8
    assert double.__name__ == "double"


@pytest.mark.parametrize(
    "errors",
    [[ValueError("a"), KeyError("b"), None], [None, KeyError("b"), ValueError("a")], [asyncio.CancelledError(), None, KeyError("b")]],
)
async def test_steps_after_those_that_failed_are_run_too_and_what_the_first_raised_is_raised(errors: list[BaseException | None]) -> None:
    ended: list[int] = []

    def steps(index: int, error: BaseException | None) -> Steps[None]:
        yield later(None)
        ended.append(index)
        if error is not None:
            raise error

    for error in (None, KeyboardInterrupt()):
        ended.clear()
        several = [*errors, None] if error is None else [error, *errors]
        with pytest.raises(BaseException) as raised:  # noqa: PT011
            await run_async(run_each(steps(*each) for each in enumerate(several)))
        assert raised.value is next(each for each in several if each is not None)
        assert ended == [0, 1, 2, 3]


def test_what_is_given_up_in_the_middle_runs_none_of_those_that_follow() -> None:
    begun: list[str] = []

    def steps(word: str) -> Steps[None]:
        begun.append(word)
        yield Ready()

    for several in (
        run_each(map(steps, "ab")),
        run_handlers([(word, lambda word=word: begin(steps(word)) and later(word)) for word in "cd"]),
    ):
        awaitable = several.send(None)
        several.close()
        awaitable.close()  # type: ignore[attr-defined]
    assert begun == ["a", "c"]


async def test_gathering_lets_all_of_them_end_and_puts_errors_in_their_places() -> None:
    error = ValueError("x")
    *results, cancelled = await Together([later(1), failing(error), later(3), failing(asyncio.CancelledError())])
    assert results == [1, error, 3]
    assert isinstance(cancelled, asyncio.CancelledError)
    assert await Together([]) == []


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
    assert errors["d"].__cause__ is failures["d"]
    assert [record.args for record in caplog.records] == [("a",), ("b",), ("d",)]
    called.clear()
    run_sync(run_handlers([handler("f", ValueError("f"), False), handler("g", None, False)]))
    assert called == [("f", ()), ("g", ())]


async def test_all_of_them_run_together_and_the_first_that_raises_cancels_the_others() -> None:
    ended: list[str] = []

    async def one(word: str, error: Exception | None, waits: asyncio.Event | None = None) -> None:
        try:
            await (asyncio.sleep(0) if waits is None else waits.wait())
            if error:
                raise error
        finally:
            ended.append(word)

    async def turned(cancelled: Any) -> None:
        try:
            await cancelled
        except asyncio.CancelledError:
            raise ValueError("while it was cancelled") from None

    await all_of([])
    await all_of(one(word, None) for word in "ab")
    with pytest.raises(KeyError):
        await all_of([one("c", None, asyncio.Event()), one("d", KeyError("x"))])
    assert ended == ["a", "b", "d", "c"]
    ended.clear()
    running = asyncio.ensure_future(all_of(one(word, None, asyncio.Event()) for word in "gh"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == ["g", "h"]
    ended.clear()
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    with pytest.raises(KeyError):
        await all_of([one("e", KeyError("x")), turned(one("f", None, asyncio.Event()))])
    gc.collect()  # asyncio reports errors that nobody asked for when their tasks go
    assert reported == []


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


async def test_an_error_that_is_raised_where_they_wait_reaches_the_steps() -> None:
    """As asyncio does it to cancel a task of them; they may go on."""

    def steps() -> Steps[list[Any]]:
        seen: list[Any] = []
        for _ in range(2):
            try:
                seen.append((yield asyncio.sleep(0, "slept")))
            except asyncio.CancelledError as error:
                seen.append(error.args)
        return seen

    pending = begin(steps())
    assert isinstance(pending, Pending)
    task = asyncio.create_task(pending)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel("enough")
    assert await task == [("enough",), "slept"]


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
    with pytest.raises((kind, RuntimeError)) as caught:  # a coroutine cannot raise StopIteration
        asyncio.run(bridge(WAYS[way], kind)) if is_bridged else WAYS[way](kind)
    error = caught.value if isinstance(caught.value, kind) else caught.value.__cause__
    assert isinstance(error, kind)
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert (last.filename, last.line) == (__file__, 'raise kind("the line to find")')


# Environments whose hooks wait


class AsyncRewards(RandomTalk):
    """Only its reward functions are async: those of the whole episode, or those of its turns."""

    def __init__(self, *, of_turns: bool) -> None:
        async def one() -> float:
            return float(await later(1.0))

        rubric = Rubric([] if of_turns else one)
        if of_turns:
            rubric.add_step_reward_func(one)
        super().__init__(max_turns=3, rubric=rubric)


class AsyncCleanup(RandomTalk):
    @cleanup
    async def tidy(self, state: State) -> None:
        await asyncio.sleep(0)


def make() -> AsyncRandomTalk:
    return AsyncRandomTalk(max_turns=3)


def play(env: Any) -> list[Any]:
    return [env.reset(seed=1), *map(env.step, ["a", "bb", "ccc"])]


async def test_an_episode_is_stepped_in_a_running_loop_by_either_face_and_from_other_threads() -> None:
    """As in a Jupyter cell."""
    expected = await asyncio.to_thread(play, make())
    assert play(make()) == expected
    env = make()
    mixed = [env.reset(seed=1), await env.astep("a"), env.step("bb"), await asyncio.to_thread(env.step, "ccc")]
    assert mixed == expected


def test_episodes_can_be_stepped_from_several_threads_at_once() -> None:
    expected, definition = play(make()), make()
    with ThreadPoolExecutor(8) as pool:
        assert all(outcomes == expected for outcomes in pool.map(lambda _: play(definition.fork()), range(32)))
    assert definition.cleaned == 32


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize(
    "kind", [make, lambda: AsyncRewards(of_turns=True), lambda: AsyncRewards(of_turns=False), lambda: AsyncCleanup(max_turns=3)]
)
def test_a_sync_step_that_must_wait_on_the_background_loop_itself_raises(kind: Callable[[], RandomTalk]) -> None:
    """It leaves no coroutine behind that was never awaited, and the environment can still be used from elsewhere."""
    env = kind()

    async def on_the_loop() -> None:
        with pytest.raises(WouldDeadlock, match="astep"):
            play(env)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        wait(on_the_loop())
        gc.collect()
    assert told == []
    assert play(env)[-1].info["stop_condition"]


def test_plain_hooks_start_no_thread() -> None:
    program = """
        import threading
        import vfgym
        from tests.environments import Talk

        def add(a: int, b: int) -> int:
            return a + b

        rows = [{"question": "?"}]
        rubric = vfgym.Rubric(lambda completion: 1.0)
        call = vfgym.AssistantMessage(None, tool_calls=[vfgym.ToolCall("1", "add", '{"a": 1, "b": 2}')])
        for env in (vfgym.SingleTurnEnv(rows, rubric=rubric), Talk(max_turns=2), vfgym.ToolEnv(tools=[add], dataset=rows)):
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


async def test_stock_wrappers_are_stepped_from_async_code_without_threads() -> None:
    """Many episodes at once through wrappers that know nothing of async."""
    definition = make()
    threads = threading.active_count()

    def episode(index: int) -> tuple[bool, int]:
        env = gym.wrappers.RecordEpisodeStatistics(gym.wrappers.TimeLimit(definition.fork(), 2))
        env.reset(seed=index)
        env.step("a")
        *_, truncated, info = env.step("bb")
        return truncated, info["episode"]["l"]

    assert await asyncio.gather(*(bridge(episode, index) for index in range(100))) == [(True, 2)] * 100
    assert threading.active_count() == threads


async def test_cancelling_a_bridged_step_cleans_up_once() -> None:
    class Stuck(RandomTalk):
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

    class Slow(RandomTalk):
        async def env_response(self, messages: list[Message], state: State) -> Any:
            try:
                interrupt()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)
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
    class Named(RandomTalk):
        async def env_response(self, messages: list[Message], state: State) -> Any:
            return await later(name.get())

    env = Named()
    env.reset(seed=0)
    token = name.set("ann")
    try:
        assert env.step("who?").observation[-1]["content"] == "ann"
    finally:
        name.reset(token)
