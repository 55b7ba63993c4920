"""Functions that take long: on threads where they are marked, named in a warning where not."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.programs import run_python
from vfgym import AssistantMessage, Rubric, ScriptedAgent, SingleTurnEnv, State, ToolCall, ToolEnv, aevaluate
from vfgym.aio import threads
from vfgym.aio.bridge import bridge
from vfgym.aio.threads import Worker
from vfgym.messages import Message
from vfgym.testing import ScriptedClient

SIDE_BY_SIDE = 8
PATIENCE = 20
"""Seconds after which a barrier gives up, so that a test fails instead of hanging."""
ROWS = [{"question": f"{index}"} for index in range(SIDE_BY_SIDE)]
name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


def call(tool: str, arguments: str = "{}") -> AssistantMessage:
    return AssistantMessage(None, tool_calls=[ToolCall("1", tool, arguments)])


class Library(ToolEnv):
    """A blocking tool, and blocking functions that score: they note where they run, and some meet others in the middle of their calls."""

    def __init__(self, parties: int = 1) -> None:
        rubric = Rubric([self.given])
        rubric.add_step_reward_func(self.each_turn, weight=0.25)
        super().__init__(dataset=ROWS, tools=[self.look_up], rubric=rubric)
        self.barrier = threading.Barrier(parties, timeout=PATIENCE)
        self.threads: dict[str, list[int]] = {}

    def note(self, function: str) -> float:
        self.threads.setdefault(function, []).append(threading.get_ident())
        return 1.0

    @vfgym.blocking
    def look_up(self, word: str = "") -> str:
        """Look up a word."""
        self.note("look_up")
        self.barrier.wait()
        return f"{word} for {name.get()}"

    @vfgym.blocking
    def given(self, completion: list[Message]) -> float:
        self.barrier.wait()
        return self.note("given")

    @vfgym.blocking
    def each_turn(self, step: Any) -> float:
        return self.note("each_turn")

    @vfgym.reward(weight=0.5)
    @vfgym.blocking
    def marked(self, state: State) -> float:
        state["judged for"] = name.get()
        return self.note("marked")

    @vfgym.blocking
    @vfgym.metric
    def broken(self) -> float:
        self.note("broken")
        raise LookupError("no judge")


class InGroups(Library):
    @vfgym.metric(stage="group")
    @vfgym.blocking
    def together(self, states: list[State]) -> list[float]:
        self.note("together")
        return [float(len(states)) for _ in states]


@pytest.mark.parametrize("is_async", [False, True])
async def test_blocking_functions_run_on_threads_in_async_code_and_in_place_in_plain_code(is_async: bool) -> None:
    env = Library()
    token = name.set("ann")
    try:
        env.reset(seed=0)
        answer = call("look_up", '{"word": "x"}')
        told, ended = [await env.astep(each) if is_async else await asyncio.to_thread(env.step, each) for each in (answer, "done")]
    finally:
        name.reset(token)
    assert (told.observation[-1]["content"], ended.reward, env.state["judged for"]) == ("x for ann", 1.75, "ann")
    assert "no judge" in env.state["metrics_errors"]["broken"]
    assert {function: len(threads) for function, threads in env.threads.items()} == {
        **{"look_up": 1, "each_turn": 2, "given": 1, "marked": 1, "broken": 1}
    }
    assert threading.get_ident() not in set().union(*env.threads.values())


def test_blocking_functions_run_in_place_in_plain_code() -> None:
    env = Library()
    env.reset(seed=0)
    env.step(call("look_up"))
    env.step("done")
    assert set().union(*env.threads.values()) == {threading.get_ident()}


async def test_blocking_tools_of_rollouts_and_bridges_run_on_threads() -> None:
    env = Library(2)

    def stepped() -> Any:
        seat = env.fork()
        seat.reset(seed=0)
        return seat.step(call("look_up")).observation[-1]["content"]

    async def rolled_out() -> Any:
        state = await env.rollout(env.tasks.input(0), ScriptedClient([call("look_up"), "done"]), "m")
        return state["completion"][1]["content"]

    name.set("ann")
    assert await asyncio.gather(bridge(stepped), rolled_out()) == [" for ann", " for ann"]
    assert threading.get_ident() not in env.threads["look_up"]


async def test_blocking_functions_of_many_rollouts_run_at_once() -> None:
    """Each call waits until all are in the middle of one: on the loop, or on a shared thread, none would return."""
    env = Library(SIDE_BY_SIDE)
    rows = (await aevaluate(env, ScriptedAgent([call("look_up"), "done"]), progress=False))["outputs"]
    assert [(row["reward"], row["completion"][1]["content"]) for row in rows] == [(2.0, " for nobody")] * SIDE_BY_SIDE
    env = InGroups(SIDE_BY_SIDE)
    states = [await env.rollout(env.tasks.input(0), ScriptedClient(["x"]), "m") for _ in range(SIDE_BY_SIDE)]
    await env.rubric.score_group(states)
    assert [(state["reward"], state["metrics"]["together"]) for state in states] == [(1.75, float(SIDE_BY_SIDE))] * SIDE_BY_SIDE
    assert len(set(env.threads["given"])) == SIDE_BY_SIDE
    assert threading.get_ident() not in set().union(*env.threads.values())


# The warning


LONG = 0.12
"""Seconds that are too long on a loop: a plain function may hold it for 0.1."""


def slow_tool() -> str:
    """Take long."""
    time.sleep(LONG)
    return "done"


def slow_reward(state: State) -> float:
    time.sleep(LONG)
    return 1.0


@vfgym.blocking
def slow_on_a_thread(state: State) -> float:
    time.sleep(LONG)
    return 1.0


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


async def test_a_plain_tool_that_holds_the_loop_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    env = ToolEnv(tools=[slow_tool], dataset=ROWS)
    await env.areset(seed=0)
    for _ in range(2):
        assert (await env.astep(call("slow_tool"))).observation[-1]["content"] == "done"
    [warning] = warnings_of(caplog)
    assert warning.startswith("slow_tool held up the event loop")
    assert "@vfgym.blocking" in warning


async def test_a_plain_reward_function_that_holds_the_loop_is_named_once_and_a_blocking_one_never(caplog: pytest.LogCaptureFixture) -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric([slow_reward, slow_on_a_thread]))
    for _ in range(2):
        await env.areset(seed=0)
        assert (await env.astep("x")).reward == 2.0
    [warning] = warnings_of(caplog)
    assert warning.startswith("slow_reward held up the event loop")


# Threads


async def test_a_worker_runs_everything_on_one_thread_of_its_own_with_the_callers_context() -> None:
    worker = Worker()
    name.set("ann")
    try:
        seen = [await worker.run(lambda: (threading.current_thread().name, name.get())) for _ in range(3)]
    finally:
        worker.close()
    assert len(set(seen)) == 1
    assert seen[0][0] != threading.current_thread().name
    assert seen[0][1] == "ann"


async def test_a_worker_that_is_closed_carries_out_what_was_sent_before() -> None:
    worker = Worker()
    sent = worker.send(int, "7")
    worker.close()
    assert await asyncio.wrap_future(sent) == [7, None]


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("its own"), SystemExit(2), asyncio.CancelledError()])
async def test_what_a_thread_raises_is_raised_where_it_is_awaited(error: BaseException) -> None:
    def fail() -> None:
        raise error

    for limit in (None, PATIENCE):
        with pytest.raises(type(error)) as caught:
            await threads.on_thread(fail, limit=limit)
        assert caught.value is error


async def test_a_stop_iteration_becomes_an_error_that_can_be_awaited() -> None:
    with pytest.raises(RuntimeError, match=r"^the function raised StopIteration\(\)$") as caught:
        await threads.on_thread(next, iter(()))
    assert isinstance(caught.value.__cause__, StopIteration)


async def test_what_has_no_answer_in_time_is_given_up_and_named_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_named_as_given_up", set())
    release = threading.Event()
    for name, told in (("the reader", "the reader"), ("the reader", "the reader"), (None, "wait")):
        with pytest.raises(TimeoutError, match=rf"^{told} did not return within 0\.01 s$"):
            await threads.on_thread(release.wait, PATIENCE, name=name, limit=0.01)
    release.set()
    given_up = "has not returned, and nobody waits for it any longer: its thread is left to it"
    assert warnings_of(caplog) == [f"the reader {given_up}", f"wait {given_up}"]
    assert await threads.on_thread(int, "7", name="the reader", limit=PATIENCE) == 7
    assert await threads.on_thread(int, "7", limit=None) == 7


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> threads._Pool:
    """The threads of this test, of which there may be one."""
    made = threads._Pool()
    made.most = 1
    monkeypatch.setattr(threads, "_pool", made)
    return made


async def test_where_all_threads_are_busy_calls_wait_for_one_in_order(pool: threads._Pool) -> None:
    began, release = threading.Event(), threading.Event()
    done: list[Any] = []

    def first() -> None:
        began.set()
        release.wait(PATIENCE)

    calls = [asyncio.ensure_future(threads.on_thread(first))]
    await asyncio.to_thread(began.wait)
    calls += [asyncio.ensure_future(threads.on_thread(done.append, word)) for word in "abc"]
    await asyncio.sleep(0)
    calls[1].cancel()
    release.set()
    assert [type(each) for each in await asyncio.gather(*calls, return_exceptions=True)] == [
        type(None),
        asyncio.CancelledError,
        *[type(None)] * 2,
    ]
    assert done == ["b", "c"]
    assert await threads.on_thread(int, "7") == 7


async def test_another_takes_the_place_of_a_thread_that_is_given_up(pool: threads._Pool) -> None:
    began, release, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        release.wait(PATIENCE)
        ended.set()

    call = asyncio.ensure_future(threads.on_thread(slow))
    await asyncio.to_thread(began.wait)
    waiting = asyncio.ensure_future(threads.on_thread(threading.get_ident))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    first = await waiting
    assert await threads.on_thread(threading.get_ident) == first, "a thread that is done is taken again"
    release.set()
    assert await asyncio.to_thread(ended.wait, PATIENCE), "the call goes on by itself"


async def test_a_thread_that_comes_in_the_moment_of_a_cancellation_is_there_for_others(pool: threads._Pool) -> None:
    worker = await pool.take()
    waiting = asyncio.ensure_future(pool.take())
    await asyncio.sleep(0)
    pool.give_back(worker)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.wait_for(pool.take(), PATIENCE) is worker
    worker.close()


def test_so_many_may_run_at_once_at_least(pool: threads._Pool) -> None:
    for count, most in ((3, 3), (2, 3), (4, 4)):
        threads.allow_workers(count)
        assert pool.most == most


async def test_a_worker_is_busy_until_its_call_returns_and_ends_with_its_owner() -> None:
    worker, release = Worker(), threading.Event()
    sent = worker.send(release.wait, PATIENCE)
    assert worker.is_busy
    release.set()
    assert await asyncio.wrap_future(sent) == [True, None]
    assert not worker.is_busy
    thread = await worker.run(threading.current_thread)
    del worker
    gc.collect()
    await asyncio.to_thread(thread.join, PATIENCE)
    assert not thread.is_alive()


async def test_what_is_moved_off_the_loop_is_called_in_place_elsewhere() -> None:
    class Game:
        timeout_seconds = None

        @threads.off_loop
        def move(self, *args: Any, **kwargs: Any) -> Any:
            return threading.get_ident(), args, kwargs

        @threads.off_loop
        def wait_for(self, release: threading.Event) -> Any:
            return release.wait(PATIENCE)

        def plain(self) -> None: ...

    thread, *given = await Game().move(1, b=2)
    assert thread != threading.get_ident()
    assert (given, threads.is_off_loop(Game.move), threads.is_off_loop(Game.plain)) == ([(1,), {"b": 2}], True, False)
    game, release = Game(), threading.Event()
    game.timeout_seconds = 0.01  # type: ignore[assignment]
    with pytest.raises(TimeoutError, match=r"^wait_for did not return within 0\.01 s$"):
        await game.wait_for(release)
    release.set()
    called = await asyncio.to_thread(lambda: (Game().move()[0], threading.get_ident()))
    assert called[0] == called[1]


def test_blocking_functions_have_threads_in_a_forked_process_too() -> None:
    """As in `gymnasium.vector.AsyncVectorEnv`: a child inherits the pool, and not its threads."""
    program = """
        import asyncio, os, threading
        from vfgym.aio.background import wait
        from vfgym.aio.threads import on_thread

        async def ask():
            return await on_thread(threading.get_ident)

        assert asyncio.run(ask()) != threading.get_ident()
        assert wait(ask()) != threading.get_ident()  # on the background loop, which a child has not either
        child = os.fork()
        if child == 0:
            both = [asyncio.run(ask()), wait(ask())]
            os._exit(0 if threading.get_ident() not in both else 1)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status))
    """
    done = run_python(program, "-W", "ignore")
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


# What is a function's own time


class Clock:
    """The clocks of a thread that nothing moves but the function that is called, in seconds."""

    def __init__(self) -> None:
        self.wall = self.own = self.others = self.without_core = 0.0

    def perf_counter(self) -> float:
        return self.wall

    def thread_time(self) -> float:
        return self.own

    def process_time(self) -> float:
        return self.own + self.others

    def pass_by(self, wall: float, own: float = 0.0, others: float = 0.0, without_core: float = 0.0) -> None:
        self.wall, self.own = self.wall + wall, self.own + own
        self.others, self.without_core = self.others + others, self.without_core + without_core


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(threads, "time", made)
    monkeypatch.setattr(threads, "_seconds_without_core", lambda: made.without_core)
    monkeypatch.setattr(threads, "_clocks", threads._Clocks())
    monkeypatch.setattr(threads, "_named_as_slow", set())
    return made


@pytest.mark.parametrize(
    ("passes", "held"),
    [
        ({"wall": 0.09}, None),
        ({"wall": 0.11}, 110),  # it slept, or waited for a file
        ({"wall": 0.11, "own": 0.11}, 110),
        ({"wall": 0.2, "own": 0.05, "without_core": 0.15}, None),
        ({"wall": 0.5, "own": 0.05, "without_core": 0.15}, 350),
        ({"wall": 0.5, "own": 0.05, "others": 0.45}, None),  # it may have waited for the interpreter
        ({"wall": 0.5, "own": 0.2, "others": 0.3}, 200),
        ({"wall": 0.5, "own": 0.0, "others": 0.05}, 500),  # the others took too little to be what it waited for
    ],
)
async def test_what_held_up_a_loop_is_told_by_what_a_function_did_itself(
    passes: dict[str, float], held: int | None, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.pass_by(1000, own=10, others=10, without_core=10)
    threads.in_place("before", lambda: clock.pass_by(0.001, own=0.001))
    for _ in range(2):
        threads.in_place("the function", lambda: clock.pass_by(**passes))
    expected = f"the function held up the event loop, and every episode on it, for {held} ms: make it async"
    assert [told.partition(", or")[0] for told in warnings_of(caplog)] == ([] if held is None else [expected])


@pytest.mark.parametrize(("times", "held"), [(0, 1100), (1, 800), (3, 200), (4, None)])
async def test_what_collections_of_everything_may_take_is_not_a_functions_own(
    times: int, held: int | None, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = [7]
    monkeypatch.setattr(threads.gc, "get_stats", lambda: [{"collections": 900}, {"collections": 80}, {"collections": sum(collected)}])
    monkeypatch.setattr(threads.sys, "getallocatedblocks", lambda: 1_000_000)
    threads.in_place("before", lambda: clock.pass_by(0.001))
    threads.in_place("the function", lambda: (collected.extend([1] * times), clock.pass_by(1.1, own=1.1)))
    assert [told.split(" ms")[0].split()[-1] for told in warnings_of(caplog)] == ([] if held is None else [str(held)])


def test_ctrl_c_during_a_collection_is_not_lost() -> None:
    """Whatever Python runs at the end of one would be interrupted, and what it raises is ignored."""
    assert not [each for each in gc.callbacks if getattr(each, "__module__", "").startswith(("vfgym", "verifiers_compat"))]


async def test_what_the_thread_computed_before_is_not_a_functions_own(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    threads.in_place("first", lambda: None)
    clock.pass_by(0.015, own=0.015)  # the clocks were read a moment ago
    threads.in_place("second", lambda: clock.pass_by(0.5, own=0.105, others=0.395))
    assert [told.split()[0] for told in warnings_of(caplog)] == ["second"]
    assert "for 105 ms" in warnings_of(caplog)[0]
    clock.pass_by(1.0, own=1.0)
    threads.in_place("third", lambda: clock.pass_by(0.01))
    assert len(warnings_of(caplog)) == 1


def test_off_a_loop_nothing_is_told_and_what_is_raised_is_raised(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError):
        threads.in_place("plain", lambda: (clock.pass_by(9), 1 / 0))
    assert warnings_of(caplog) == []


async def test_a_slow_function_that_raises_is_told_too(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError):
        threads.in_place("failing", lambda: (clock.pass_by(9), 1 / 0))
    assert len(warnings_of(caplog)) == 1


def test_the_system_tells_how_long_a_thread_had_no_core() -> None:
    if not Path("/proc/thread-self/schedstat").exists():
        pytest.skip("the system does not tell")
    before = threads._seconds_without_core()
    assert 0.0 <= before <= threads._seconds_without_core() < 10**6
