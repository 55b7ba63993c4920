"""A blocking call that does not return by its rollout's deadline is given up: no run, no later one and no process is held up."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from tests.programs import run_python
from tests.wrappers.games.nim import NimEnv
from vfgym import Rubric, ScriptedAgent, aevaluate
from vfgym.aio import threads
from vfgym.aio.threads import on_thread
from vfgym.messages import AssistantMessage, Message, ToolCall
from vfgym.state import State
from vfgym.testing import ScriptedClient

LIMIT = 1.0
"""Seconds that an episode may take: plenty for one that does not hang, on a busy machine too."""
PATIENCE = 60.0
"""Seconds after which a test fails instead of hanging."""
ROWS = [{"question": f"topic {index}"} for index in range(3)]
CALL = AssistantMessage(None, tool_calls=[ToolCall("1", "use", "{}")])


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What hanging functions wait for; set at the end, so that no thread outlives its test for long."""
    event = threading.Event()
    yield event
    event.set()


class Hanging(vf.ToolEnv):
    def __init__(self, where: str, release: threading.Event, **kwargs: Any) -> None:
        self.where, self.release = where, release
        self.threads: list[int] = []
        rubric = Rubric([self.rewarded])
        super().__init__(**{"tools": [self.use], "dataset": ROWS, "rubric": rubric, "timeout_seconds": LIMIT, **kwargs})

    def hang(self, where: str, state: State | None) -> None:
        self.threads.append(threading.get_ident())
        if where == self.where and (state is None or state["example_id"] == 1):
            assert self.release.wait(PATIENCE)

    @vfgym.blocking
    def setup_state(self, state: State) -> Any:
        self.hang("setup_state", state)
        return super().setup_state(state)

    @vfgym.blocking
    def add_trajectory_step(self, state: State, trajectory_step: Any) -> Any:
        self.hang("add_trajectory_step", state)
        return super().add_trajectory_step(state, trajectory_step)

    @vfgym.stop
    @vfgym.blocking
    def is_enough(self, state: State) -> bool:
        self.hang("is_enough", state)
        return False

    @vfgym.cleanup
    @vfgym.blocking
    def tidy(self, state: State) -> None:
        self.hang("tidy", state)

    @vfgym.blocking
    def use(self) -> str:
        """Use it."""
        self.hang("use", None)
        return "used"

    @vfgym.blocking
    def rewarded(self, state: State) -> float:
        self.hang("rewarded", state)
        return 1.0


async def evaluated(env: Any) -> list[Any]:
    columns = ["cleanup_errors"]
    return list((await aevaluate(env, ScriptedAgent([CALL, "x"]), state_columns=columns, progress=False))["outputs"])


async def generated(env: Any) -> list[Any]:
    columns = ["cleanup_errors"]
    rows = (await env.generate(ROWS, ScriptedClient([CALL, "x"]), "m", state_columns=columns))["outputs"]
    return sorted(rows, key=lambda row: row["example_id"])


def told(row: Any) -> tuple[Any, ...]:
    return (row["stop_condition"], row["error"], row["reward"], row.get("metrics_errors"), row["cleanup_errors"])


AS_EVER = ("no_tools_called", None, 1.0, None, None)
LATE = ("timeout_reached", None, 1.0, None, None)
ENDS = {
    "setup_state": [AS_EVER, LATE, AS_EVER],
    "add_trajectory_step": [AS_EVER, LATE, AS_EVER],
    "is_enough": [AS_EVER, LATE, AS_EVER],
    "use": [LATE] * 3,
    # What scores and cleans up may take as long as an episode.
    "rewarded": [
        AS_EVER,
        ("no_tools_called", None, 0.0, {"rewarded": "TimeoutError('rewarded did not return within 1 s')"}, None),
        AS_EVER,
    ],
    "tidy": [AS_EVER, ("no_tools_called", None, 1.0, None, {"tidy": "TimeoutError('tidy did not return within 1 s')"}), AS_EVER],
}
"""How the three examples of `Hanging` end, by where the one in the middle hangs."""


@pytest.mark.parametrize("run", [evaluated, generated])
async def test_what_hangs_ends_its_rollout_at_the_deadline_and_no_other(run: Callable[[Any], Any], release: threading.Event) -> None:
    envs = {where: Hanging(where, release) for where in ENDS}
    rows = await asyncio.gather(*map(run, envs.values()))
    assert {where: list(map(told, each)) for where, each in zip(envs, rows, strict=True)} == ENDS
    assert not any(threading.get_ident() in env.threads for env in envs.values())


async def test_a_blocking_agent_ends_its_rollout_at_the_deadline_and_is_named(
    release: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    @vfgym.blocking
    def forgetful(observation: list[Message], info: dict[str, Any]) -> str:
        if info["example_id"] == 1:
            assert release.wait(PATIENCE)
        return "x"

    rows = (await aevaluate(Hanging("nowhere", release), forgetful, progress=False))["outputs"]
    assert [row["stop_condition"] for row in rows] == ["no_tools_called", "timeout_reached", "no_tools_called"]
    assert [row["error"] for row in rows] == [None] * 3
    assert [record.getMessage().split()[0] for record in caplog.records] == ["forgetful"]


async def test_a_blocking_opponent_ends_the_rollout_at_the_deadline(release: threading.Event) -> None:
    @vfgym.blocking
    def forgetful(observation: list[Message], info: dict[str, Any]) -> str:
        assert release.wait(PATIENCE)
        return "x"

    env = NimEnv(sticks=9, seat=0, opponents=forgetful, timeout_seconds=LIMIT)
    rows = (await aevaluate(env, "random", num_examples=2, progress=False))["outputs"]
    assert [(row["stop_condition"], row["error"]) for row in rows] == [("timeout_reached", None)] * 2


# Threads


async def test_threads_that_are_given_up_leave_their_places_to_others(monkeypatch: pytest.MonkeyPatch, release: threading.Event) -> None:
    pool = threads._Pool()
    pool.most = 2
    monkeypatch.setattr(threads, "_pool", pool)
    meeting = threading.Barrier(2, timeout=PATIENCE)
    for _ in range(3):
        hanging = [asyncio.ensure_future(on_thread(release.wait, PATIENCE)) for _ in range(4)]
        await asyncio.sleep(0.05)
        for task in hanging:
            task.cancel()
        assert [type(each) for each in await asyncio.gather(*hanging, return_exceptions=True)] == [asyncio.CancelledError] * 4
        await asyncio.wait_for(asyncio.gather(on_thread(meeting.wait), on_thread(meeting.wait)), PATIENCE)


async def test_no_more_calls_run_at_once_than_there_may_be_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = threads._Pool()
    pool.most = 3
    monkeypatch.setattr(threads, "_pool", pool)
    lock, running, most = threading.Lock(), 0, 0

    def call(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gc.collect(0)
        with lock:
            running -= 1
        return number

    assert await asyncio.gather(*(on_thread(call, number) for number in range(50))) == [*range(50)]
    assert most <= 3
    assert len(pool._idle) <= 3


async def test_more_calls_may_run_at_once_and_never_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for fewer threads than somebody else did takes none away: the pool is that of the whole process."""
    pool = threads._Pool()
    pool.most = 1
    monkeypatch.setattr(threads, "_pool", pool)
    threads.allow_workers(3)
    threads.allow_workers(2)
    meeting = threading.Barrier(3, timeout=PATIENCE)
    await asyncio.gather(*(on_thread(meeting.wait) for _ in range(3)))


async def test_what_waits_for_a_thread_can_be_cancelled(monkeypatch: pytest.MonkeyPatch, release: threading.Event) -> None:
    pool = threads._Pool()
    pool.most = 1
    monkeypatch.setattr(threads, "_pool", pool)
    first = asyncio.ensure_future(on_thread(release.wait, PATIENCE))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(on_thread(int, "2"))
    third = asyncio.ensure_future(on_thread(int, "3"))
    await asyncio.sleep(0.01)
    second.cancel()
    release.set()
    first_result, second_result, third_result = await asyncio.gather(first, second, third, return_exceptions=True)
    assert (first_result, type(second_result), third_result) == (True, asyncio.CancelledError, 3)


# The process


def test_a_process_ends_by_itself_though_calls_of_every_kind_hang() -> None:
    program = """
        import asyncio, threading
        import vfgym

        forever = threading.Event()

        @vfgym.blocking
        def agent(observation, info):
            forever.wait()

        @vfgym.blocking
        def reward(state):
            forever.wait()

        class Env(vfgym.SingleTurnEnv):
            @vfgym.blocking
            def setup_state(self, state):
                forever.wait()

        class Game(vfgym.GameEnv):
            def open_game(self):
                return object()

            def begin_game(self, game, state, seed, options):
                return [vfgym.UserMessage("move")]

            def make_move(self, game, message, state):
                forever.wait()

        rows = [{"question": "?"}]
        hang = {
            "agent": (vfgym.SingleTurnEnv(rows, timeout_seconds=0.3), agent),
            "reward": (vfgym.SingleTurnEnv(rows, rubric=vfgym.Rubric(reward), timeout_seconds=0.3), lambda *_: "x"),
            "hook": (Env(rows, timeout_seconds=0.3), lambda *_: "x"),
            "game": (Game(timeout_seconds=0.3), lambda *_: "x"),
        }

        async def play():
            runs = [vfgym.aevaluate(env, player, num_examples=1, progress=False) for env, player in hang.values()]
            for where, results in zip(hang, await asyncio.gather(*runs)):
                print(where, *[(row["reward"], row["stop_condition"] == "timeout_reached") for row in results["outputs"]])

        asyncio.run(play())
        print(sum(thread.is_alive() and thread.daemon for thread in threading.enumerate()) >= 4, flush=True)
    """
    done = run_python(program)
    assert done.stdout.splitlines()[:-1] == ["agent (0.0, True)", "reward (0.0, False)", "hook (0.0, True)", "game (0.0, True)"], (
        done.stderr
    )
    assert (done.stdout.splitlines()[-1], done.returncode) == ("True", 0)
