"""Functions that take long: on threads where they are marked, named in a warning where not."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.programs import run_python
from vfgym import AssistantMessage, Rubric, ScriptedAgent, SingleTurnEnv, State, ToolCall, ToolEnv, aevaluate
from vfgym.aio import threads
from vfgym.aio.background import background_loop, wait
from vfgym.aio.bridge import bridge
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import is_blocking
from vfgym.messages import Message
from vfgym.testing import ScriptedClient
from vfgym.wrappers.games.turns import game_reward

SIDE_BY_SIDE = 8
PATIENCE = 20
"""Seconds after which a barrier gives up, so that a test fails instead of hanging."""

name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


def call(tool: str, arguments: str = "{}") -> AssistantMessage:
    return AssistantMessage(None, tool_calls=[ToolCall("1", tool, arguments)])


def loop_thread() -> int:
    """Return the thread of the loop that synchronous callers share."""

    async def here() -> int:
        return threading.get_ident()

    assert not background_loop().is_closed()
    return int(wait(here()))


# The mark


def test_a_marked_function_stays_the_function_it_was() -> None:
    def function() -> float:
        return 1.0

    assert not is_blocking(function)
    assert vfgym.blocking(function) is function
    assert is_blocking(function)


def test_an_async_function_cannot_be_marked() -> None:
    async def look() -> str:
        return "seen"

    with pytest.raises(ConfigurationError, match="look is async"):
        vfgym.blocking(look)


def test_methods_and_wrapped_functions_are_marked_too() -> None:
    class Tools:
        @vfgym.blocking
        def method(self) -> float:
            return 1.0

    @vfgym.blocking
    def function() -> float:
        return 1.0

    @functools.wraps(function)
    def wrapped() -> float:
        return function()

    assert is_blocking(Tools().method)
    assert is_blocking(wrapped)


# Tools


class Library(ToolEnv):
    """A blocking tool that notes where it runs and for whom, and can meet others in the middle of their calls."""

    def __init__(self, parties: int = 1, **kwargs: Any) -> None:
        super().__init__(dataset=[{"question": f"{index}"} for index in range(SIDE_BY_SIDE)], tools=[self.look_up, self.lose], **kwargs)
        self.barrier = threading.Barrier(parties, timeout=PATIENCE)
        self.threads: list[int] = []

    @vfgym.blocking
    def look_up(self, word: str = "") -> str:
        """Look up a word."""
        self.threads.append(threading.get_ident())
        self.barrier.wait()
        return f"{word} for {name.get()}"

    @vfgym.blocking
    def lose(self) -> str:
        """Raise."""
        raise LookupError("it is lost")


def test_a_blocking_tool_runs_in_place_in_plain_code() -> None:
    env = Library()
    env.reset(seed=0)
    token = name.set("ann")
    try:
        assert env.step(call("look_up", '{"word": "x"}')).observation[-1]["content"] == "x for ann"
    finally:
        name.reset(token)
    assert env.threads == [threading.get_ident()]


async def test_blocking_tools_run_at_once_on_threads_in_async_runs() -> None:
    """Each call waits until all are in the middle of one: on the loop, or on a shared thread, none would return."""
    env = Library(SIDE_BY_SIDE)

    async def play(index: int) -> Any:
        name.set(f"reader {index}")
        seat = env.fork()
        await seat.areset(options={"example_id": index})
        return (await seat.astep(call("look_up", f'{{"word": "{index}"}}'))).observation[-1]["content"]

    said = await asyncio.gather(*map(play, range(SIDE_BY_SIDE)))
    assert said == [f"{index} for reader {index}" for index in range(SIDE_BY_SIDE)]
    assert len(set(env.threads)) == SIDE_BY_SIDE
    assert threading.get_ident() not in env.threads


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
    assert threading.get_ident() not in env.threads


async def test_an_evaluation_runs_blocking_tools_at_once() -> None:
    env = Library(SIDE_BY_SIDE)
    results = await aevaluate(env, ScriptedAgent([call("look_up"), "done"]), progress=False)
    assert [row["total_tool_calls"] for row in results["outputs"]] == [1.0] * SIDE_BY_SIDE
    assert [row["completion"][1]["content"] for row in results["outputs"]] == [" for nobody"] * SIDE_BY_SIDE
    assert threading.get_ident() not in env.threads


async def test_a_blocking_tool_leaves_the_loop_free_where_plain_code_steps_beside_one() -> None:
    """In a notebook a loop runs in the thread that steps; the loop that synchronous callers share is never held up."""
    env = Library()
    env.reset(seed=0)
    name.set("ann")
    assert env.step(call("look_up")).observation[-1]["content"] == " for ann"
    assert loop_thread() not in env.threads


def test_several_blocking_calls_of_one_answer_run_in_order() -> None:
    """Only async tools of one answer overlap: plain ones may depend on each other."""
    noted: list[str] = []

    @vfgym.blocking
    def write(word: str) -> str:
        """Write a word."""
        noted.append(word)
        return " ".join(noted)

    env = ToolEnv(tools=[write], dataset=[{"question": "?"}])
    calls = [ToolCall(f"{index}", "write", f'{{"word": "{index}"}}') for index in range(3)]

    async def play() -> list[Any]:
        await env.areset(seed=0)
        return [message["content"] for message in (await env.astep(AssistantMessage(None, tool_calls=calls))).observation[-3:]]

    assert asyncio.run(play()) == ["0", "0 1", "0 1 2"]


async def test_what_a_blocking_tool_raises_is_told_the_model() -> None:
    env = Library()
    await env.areset(seed=0)
    assert (await env.astep(call("lose"))).observation[-1]["content"] == "it is lost"
    assert (await env.astep(call("look_up", '{"wrd": 1}'))).observation[-1]["content"] != ""
    assert env.threads == []


# Reward functions


class Judged(Rubric):
    """Blocking functions of every kind, which note where they run."""

    def __init__(self, parties: int = 1) -> None:
        super().__init__([self.given])
        self.barrier = threading.Barrier(parties, timeout=PATIENCE)
        self.threads: dict[str, list[int]] = {}
        self.add_step_reward_func(self.each_turn, weight=0.25)

    def note(self, function: str) -> float:
        self.threads.setdefault(function, []).append(threading.get_ident())
        return 1.0

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


class JudgedInGroups(Judged):
    """And one for whole groups."""

    @vfgym.metric(stage="group")
    @vfgym.blocking
    def together(self, states: list[State]) -> list[float]:
        self.note("together")
        return [float(len(states)) for _ in states]


ROWS = [{"question": "?"}]


def test_blocking_reward_functions_run_in_place_in_plain_code() -> None:
    rubric = Judged()
    env = SingleTurnEnv(ROWS, rubric=rubric)
    env.reset(seed=0)
    token = name.set("ann")
    try:
        assert env.step("x").reward == 1.75
    finally:
        name.reset(token)
    here = [threading.get_ident()]
    assert rubric.threads == {"each_turn": here, "given": here, "marked": here, "broken": here}
    assert env.state["judged for"] == "ann"


async def test_blocking_reward_functions_run_on_threads_in_async_runs() -> None:
    rubric = Judged()
    env = SingleTurnEnv(ROWS, rubric=rubric)
    name.set("ann")
    await env.areset(seed=0)
    assert (await env.astep("x")).reward == 1.75
    assert env.state["judged for"] == "ann"
    assert "no judge" in env.state["metrics_errors"]["broken"]
    assert sorted(rubric.threads) == ["broken", "each_turn", "given", "marked"]
    assert threading.get_ident() not in set().union(*rubric.threads.values())


async def test_blocking_reward_functions_of_several_episodes_run_at_once() -> None:
    env = SingleTurnEnv(ROWS, rubric=Judged(SIDE_BY_SIDE))

    async def play(index: int) -> tuple[float, str]:
        name.set(f"player {index}")
        seat = env.fork()
        await seat.areset(seed=index)
        return (await seat.astep("x")).reward, seat.state["judged for"]

    assert await asyncio.gather(*map(play, range(SIDE_BY_SIDE))) == [(1.75, f"player {index}") for index in range(SIDE_BY_SIDE)]


async def test_a_blocking_reward_function_scores_the_episodes_of_a_group_at_once() -> None:
    rubric = JudgedInGroups(SIDE_BY_SIDE)
    env = SingleTurnEnv(ROWS, rubric=rubric)
    states = [await env.rollout(env.tasks.input(0), ScriptedClient(["x"]), "m") for _ in range(SIDE_BY_SIDE)]
    await env.rubric.score_group(states)
    assert [state["reward"] for state in states] == [1.75] * SIDE_BY_SIDE
    assert [state["metrics"]["together"] for state in states] == [float(SIDE_BY_SIDE)] * SIDE_BY_SIDE
    assert len(set(rubric.threads["given"])) == SIDE_BY_SIDE
    assert threading.get_ident() not in set().union(*rubric.threads.values())


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


def slow_in_plain_code() -> float:
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


async def test_a_plain_reward_function_that_holds_the_loop_is_named_once_and_a_blocking_one_never(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric([slow_reward, slow_on_a_thread]))
    for _ in range(2):
        await env.areset(seed=0)
        assert (await env.astep("x")).reward == 2.0
    [warning] = warnings_of(caplog)
    assert warning.startswith("slow_reward held up the event loop")


def test_plain_code_may_take_as_long_as_it_likes(caplog: pytest.LogCaptureFixture) -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(slow_in_plain_code))
    env.reset(seed=0)
    assert env.step("x").reward == 1.0
    assert warnings_of(caplog) == []


async def test_what_wraps_a_function_of_the_librarys_is_called_as_it_is_marked_itself() -> None:
    threads: list[int] = []

    @vfgym.blocking
    @functools.wraps(game_reward)
    def noted(step: Any) -> float:
        threads.append(threading.get_ident())
        return game_reward(step)

    rubric = vfgym.Rubric()
    rubric.add_step_reward_func(noted)
    env = vfgym.to_chat("FrozenLake-v1", rubric=rubric)
    await env.areset(seed=0)
    await env.astep("left")
    assert len(threads) == 1
    assert threading.get_ident() not in threads


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


# What is not a function's own time


def compute(seconds: float) -> float:
    """Compute for so many seconds of this thread's own time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))
    return 1.0


def taking(seconds: Any) -> float:
    """Return how long something took."""
    started = time.perf_counter()
    seconds()
    return time.perf_counter() - started


async def called_in_place(name: str, function: Any) -> float:
    """Call a function as a reward function of an episode, and return how long it took."""
    took = 0.0

    def timed(state: State) -> float:
        nonlocal took
        took = taking(function)
        return 1.0

    timed.__name__ = name
    env = SingleTurnEnv(ROWS, rubric=Rubric(timed))
    await env.areset(seed=0)
    await env.astep("x")
    return took


def read_slowly() -> None:
    """Wait for a pipe that somebody writes to late."""
    reading, writing = os.pipe()
    timer = threading.Timer(2 * LONG, os.write, (writing, b"x"))
    timer.start()
    os.read(reading, 1)
    timer.join()
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("name", "function"),
    [("computes", functools.partial(compute, 2 * LONG)), ("sleeps", functools.partial(time.sleep, 2 * LONG)), ("reads", read_slowly)],
)
async def test_computing_sleeping_and_waiting_for_a_file_are_a_functions_own(
    name: str, function: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await called_in_place(f"{name}_too_long", function)
    [warning] = warnings_of(caplog)
    assert warning.startswith(f"{name}_too_long held up the event loop")


class Tangle:
    """Something that only the garbage collector frees."""

    def __init__(self, last: Any) -> None:
        self.last = last
        self.me = self


async def test_a_collection_of_garbage_is_not_blamed_on_the_function_that_it_interrupts(caplog: pytest.LogCaptureFixture) -> None:
    size, tangle, computed = 500_000, None, 0.0
    while computed < 3 * LONG:  # however fast the machine is
        for _ in range(size):
            tangle = Tangle(tangle)
        began = time.thread_time()
        gc.collect()
        computed = time.thread_time() - began
    assert await called_in_place("interrupted_by_the_collector", gc.collect) > 2 * LONG
    assert warnings_of(caplog) == []
    await called_in_place("slow_besides_the_collector", lambda: (gc.collect(), time.sleep(2 * LONG)))
    [warning] = warnings_of(caplog)
    assert warning.startswith("slow_besides_the_collector held up")
    assert 1.8 * LONG * 1e3 <= float(warning.split(" ms:")[0].split()[-1]) < taking(gc.collect) * 1e3 + 2 * LONG * 1e3


async def test_what_other_threads_take_of_the_interpreter_is_not_blamed_on_a_function(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()

    def busy() -> None:
        while not ended.is_set():
            sum(range(1000))

    busy_threads = [threading.Thread(target=busy) for _ in range(8)]
    for thread in busy_threads:
        thread.start()
    try:
        for _ in range(20):  # until it was held up by the others
            if await called_in_place("held_up_by_others", functools.partial(compute, LONG / 4)) > LONG:
                break
        else:
            pytest.fail("the other threads left it the interpreter")
    finally:
        ended.set()
        for thread in busy_threads:
            thread.join()
    assert warnings_of(caplog) == []


def test_what_another_process_takes_of_the_core_is_not_blamed_on_a_function() -> None:
    """On one core, beside a process that goes first, little work takes long."""
    if threads._seconds_without_core() == 0.0 and not Path("/proc/thread-self/schedstat").exists():
        pytest.skip("the system does not tell how long a thread waited for a core")
    program = """
        import asyncio, os, subprocess, sys, time
        import vfgym

        took = 0.0

        def pushed_aside(state):
            global took
            started, until = time.perf_counter(), time.thread_time() + 0.03
            while time.thread_time() < until:
                sum(range(1000))
            took = time.perf_counter() - started
            return 1.0

        async def play():
            env = vfgym.SingleTurnEnv([{"question": "?"}], rubric=vfgym.Rubric(pushed_aside))
            await env.areset(seed=0)
            await env.astep("x")

        core = min(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {core})
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            os.nice(19)
            for _ in range(20):
                asyncio.run(play())
                if took > 0.2:
                    break
        finally:
            other.kill()
            other.wait()
        print("was pushed aside" if took > 0.2 else "was not")
    """
    done = run_python(program, check=True)
    assert (done.stdout, done.stderr) == ("was pushed aside\n", "")
