"""`Workers`: what comes of a call, what a call may use, that none waits for another, and that no process is left behind."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.interruptions import ctrl_c
from tests.workers.processes import descendants, end_of
from vfgym.errors import Error, InfraError, WorkerDied, WorkerTimeout
from vfgym.workers import Workers, pool
from vfgym.workers.pool import RemoteError

python = Workers("builtins")
"""Whose ``eval`` and ``exec`` are as good as any function."""

FOR_EVER = "while True: pass"
HOPELESS = "9**9**9"
"""One operation of the interpreter, which only the end of its process stops."""
PID = "__import__('os').getpid()"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited, and processes are looked up, on Linux")


# What comes of a call


async def test_results_come_back() -> None:
    assert await Workers("math").call("factorial", 5) == 120
    assert await Workers("os.path").call("join", "a", "b") == "a/b"
    assert Workers("collections").call_sync("Counter.fromkeys.__name__.upper") == "FROMKEYS"


async def test_the_functions_own_exception_arrives_with_its_traceback() -> None:
    with pytest.raises(ValueError, match="math domain error") as caught:
        await Workers("math").call("sqrt", -1)
    assert "In a worker process: Traceback" in caught.value.__notes__[0]
    with pytest.raises(RemoteError, match="math domain error") as told:
        await Workers("math", speaks_json=True).call("sqrt", -1)
    assert (told.value.kind, told.value.text) == ("ValueError", "math domain error")
    assert "In a worker process: Traceback" in told.value.__notes__[0]
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        await Workers("no_such_module").call("function")
    with pytest.raises(AttributeError, match="no_such_function"):
        await Workers("math").call("no_such_function")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class Own(Exception): pass\nraise Own('mine')", "Own: mine"),
        ("raise __import__('urllib.error').error.HTTPError('url', 404, 'gone', {}, None)", "404"),
    ],
)
async def test_what_cannot_be_raised_elsewhere_is_told(code: str, told: str) -> None:
    """Some exceptions cannot be pickled, some not be made again from their pickle, and some would end the program that asks."""
    with pytest.raises(Exception, match=told) as caught:
        await python.call("exec", code, {})
    assert isinstance(caught.value, RuntimeError | OSError)


async def test_what_cannot_be_pickled_is_an_error_of_its_call() -> None:
    with pytest.raises(TypeError, match="pickle"):
        await Workers("threading").call("Lock")
    with pytest.raises((TypeError, AttributeError), match="pickle"):
        await python.call("len", lambda: None)
    assert await python.call("len", "abc") == 3


async def test_what_is_printed_is_not_taken_for_a_result(capfd: pytest.CaptureFixture[str]) -> None:
    assert await Workers("pprint").call("pprint", "told") is None
    assert capfd.readouterr() == ("", "'told'\n")


async def test_a_worker_is_kept() -> None:
    pids = {await python.call("eval", PID) for _ in range(50)}
    assert len(pids) <= len(os.sched_getaffinity(0))
    assert os.getpid() not in pids


@on_linux
async def test_a_worker_that_has_grown_is_replaced() -> None:
    workers = Workers("builtins", is_single=True)
    before = await workers.call("eval", PID)
    await workers.call("eval", "len(b'x' * 10**8)")
    assert await workers.call("eval", PID) != before


async def test_a_single_worker_does_one_call_after_the_other() -> None:
    """Also behind a call that takes long: the next one waits, and finds what that has left in the worker's memory."""
    single = Workers("builtins", is_single=True)
    slow = f"import sys, time\nend = time.monotonic() + {4 * pool._QUICK}\nwhile time.monotonic() < end: pass\nsys.left_behind = 'kept'"
    _, found = await asyncio.gather(single.call("exec", slow), single.call("eval", "__import__('sys').left_behind"))
    assert found == "kept"


# Limits


@pytest.mark.parametrize("code", [HOPELESS, "exec('while True:\\n try:\\n  while True: pass\\n except BaseException: pass')"])
async def test_cpu_time_is_limited(code: str) -> None:
    with pytest.raises(WorkerTimeout, match=r"^eval took more than 0\.3 cpu_seconds$") as caught:
        await python.call("eval", code, cpu_seconds=0.3)
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, Error)
    with pytest.raises(WorkerTimeout, match=r"^eval took more than 0\.2 cpu_seconds$"):
        python.call_sync("eval", code, cpu_seconds=0.2)
    assert await python.call("eval", "1 + 1", cpu_seconds=5) == 2


async def test_waiting_takes_no_cpu_time_and_is_limited_too() -> None:
    await Workers("time").call("sleep", 0.4, cpu_seconds=0.2)
    with pytest.raises(WorkerTimeout, match=r"^sleep took more than 0\.3 wall_seconds$"):
        await Workers("time").call("sleep", 600, wall_seconds=0.3, cpu_seconds=600)


@on_linux
async def test_memory_is_limited_for_each_call() -> None:
    with pytest.raises(MemoryError):
        await python.call("eval", "len(bytes(300 << 20))", memory_mb=200)
    assert await python.call("eval", "len(bytes(300 << 20))") == 300 << 20
    with pytest.raises(MemoryError):
        await python.call("eval", "1 << 2**33", memory_mb=200)


@pytest.mark.parametrize("limits", [{"cpu_second": 1}, {"cpu_seconds": -1}, {"wall_seconds": "5"}])
async def test_what_is_no_limit_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises((TypeError, RuntimeError, InfraError)):
        await python.call("eval", "1", **limits)
    assert await python.call("eval", "1") == 1


# Others


async def test_slow_calls_hold_up_nobody() -> None:
    """There are more of them than cores, they compute, and they have more time than all the others could need."""
    slow = [asyncio.ensure_future(python.call("eval", HOPELESS, cpu_seconds=600)) for _ in range(8)]
    assert await asyncio.gather(*(python.call("eval", f"{n} + 1") for n in range(100))) == list(range(1, 101))
    assert not any(call.done() for call in slow)
    for call in slow:
        call.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


async def test_so_many_may_be_slow_at_once_and_more_when_those_have_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    semaphore = threading.Semaphore
    allowed: list[int] = []

    def few(count: int) -> threading.Semaphore:
        allowed.append(count)
        return semaphore(2)

    monkeypatch.setattr(pool, "_QUICK", 0.01)
    monkeypatch.setattr(threading, "Semaphore", few)
    workers = Workers("builtins")
    begun, until = tmp_path / "begun", tmp_path / "until"
    begun.touch()
    code = f"""
import os, time
print('x', end='', file=open({str(begun)!r}, 'a'), flush=True)
while not os.path.exists({str(until)!r}): time.sleep(0.01)
"""
    calls = [asyncio.ensure_future(workers.call("exec", code, {})) for _ in range(10)]
    most = 2 + len(os.sched_getaffinity(0))
    async with asyncio.timeout(60):
        while len(begun.read_text()) < most:
            await asyncio.sleep(0.01)
        assert len(begun.read_text()) == most
        calls.pop().cancel()
        calls.pop(0).cancel()  # one that waits, and one that has begun
        until.touch()
        await asyncio.gather(*calls)
    assert len(begun.read_text()) == 9
    assert allowed == [32]


@on_linux
def test_ctrl_c_ends_the_worker_of_a_call_that_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = f"import os\nprint(os.getpid(), file=open({str(file)!r}, 'w'), flush=True)\nwhile True: pass"

    def interrupt_when_it_has_begun() -> None:
        while not file.exists() or not file.read_text().endswith("\n"):
            ended.wait(0.01)
        interrupt()

    ended = threading.Event()
    with ctrl_c() as interrupt:
        thread = threading.Thread(target=interrupt_when_it_has_begun)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            python.call_sync("exec", code, {}, cpu_seconds=600)
        thread.join()
    asyncio.run(end_of([int(file.read_text())]))
    assert python.call_sync("eval", "1") == 1


@on_linux
async def test_who_is_cancelled_ends_the_worker_and_what_it_started(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    code = f"""
import os, subprocess
started = subprocess.Popen(["sleep", "600"])
print(os.getpid(), started.pid, file=open({str(file)!r}, "w"), flush=True)
while True: pass
"""
    call = asyncio.ensure_future(python.call("exec", code, {}))
    while not file.exists() or not file.read_text().endswith("\n"):
        await asyncio.sleep(0.01)
    pids = [int(pid) for pid in file.read_text().split()]
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await end_of(pids)
    assert await python.call("eval", "1") == 1


async def test_calls_that_are_cancelled_before_they_begin_do_not_begin(tmp_path: Path) -> None:
    workers = Workers("builtins", is_single=True)
    first = asyncio.ensure_future(workers.call("exec", FOR_EVER))
    others = [asyncio.ensure_future(workers.call("exec", f"open({str(tmp_path / 'began')!r}, 'w')")) for _ in range(100)]
    await asyncio.sleep(0)
    for call in (*others, first):
        call.cancel()
    results = await asyncio.gather(first, *others, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert await workers.call("eval", "1") == 1
    assert not (tmp_path / "began").exists()


@on_linux
async def test_a_killed_worker_is_an_error_of_its_call_and_replaced() -> None:
    with pytest.raises(WorkerDied, match="exit code 3"):
        await Workers("os").call("_exit", 3)
    with pytest.raises(WorkerDied, match=f"exit code -{signal.SIGKILL:d}"):
        await python.call("exec", "import os; os.kill(os.getpid(), 9)", {})
    single = Workers("builtins", is_single=True)
    os.kill(await single.call("eval", PID), signal.SIGKILL)
    with pytest.raises(WorkerDied):
        await single.call("eval", "1")
    assert await single.call("eval", "1") == 1


@on_linux
async def test_a_killed_program_is_replaced() -> None:
    workers = Workers("builtins", is_single=True)
    before = await workers.call("eval", PID)
    program = pool._programs["builtins"][0]
    program.kill()
    program.wait()
    assert await workers.call("eval", PID) == before  # its worker lives
    with pytest.raises(WorkerTimeout):
        await workers.call("exec", FOR_EVER, cpu_seconds=0.2)
    assert await workers.call("eval", PID) != before


async def test_a_program_that_cannot_run_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(WorkerDied, match="could not be started"):
        await Workers("json").call("loads", "1")
    broken.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(WorkerDied, match="could not be started"):
        await Workers("json").call("loads", "1")
    pool._programs["json"][0].wait()
    monkeypatch.undo()
    assert await Workers("json").call("loads", "1") == 1


# A worker of one's own


@on_linux
async def test_a_single_worker_keeps_what_is_in_its_memory() -> None:
    one, other = Workers("builtins", is_single=True), Workers("builtins", is_single=True)
    await one.call("exec", "import builtins; builtins.kept = 1", {})
    assert await one.call("eval", "kept") == 1
    with pytest.raises(NameError):
        await other.call("eval", "kept")
    with pytest.raises(WorkerTimeout):
        await one.call("exec", "import time; time.sleep(600)", {}, wall_seconds=1)
    with pytest.raises(NameError):
        await one.call("eval", "kept")
    pids = [await workers.call("eval", PID) for workers in (one, other)]
    del one, other
    gc.collect()
    await end_of(pids)


# Who asks


def test_any_number_of_loops_and_threads_may_ask() -> None:
    results: dict[int, int] = {}

    def ask(number: int) -> None:
        results[number] = asyncio.run(python.call("eval", f"{number}")) + python.call_sync("eval", "1")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: number + 1 for number in range(8)}


def test_forked_children_ask_too() -> None:
    """Of workers of their own, whose end is that of the child; the parent's go on."""
    single = Workers("builtins", is_single=True)
    before = single.call_sync("eval", PID)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps([single.call_sync("eval", PID), python.call_sync("eval", PID)]).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        pids = json.loads(file.read())
    assert before not in pids
    if sys.platform == "linux":
        asyncio.run(end_of(pids))
    assert single.call_sync("eval", PID) == before


SCRIPT = """
import os, sys, threading
from vfgym.workers import Workers
workers = Workers("builtins")
print(workers.call_sync("eval", "6 * 7"), flush=True)
if len(sys.argv) > 1:
    for _ in range(3):
        threading.Thread(target=workers.call_sync, args=("exec", "while True: pass"), daemon=True).start()
    workers.call_sync("exec", "print('at work', flush=True)\\nwhile True: pass")
"""


@on_linux
def test_scripts_need_no_main_guard_and_leave_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    for command in ([str(path)], ["-"]):
        done = subprocess.run(
            [sys.executable, "-W", "error", *command], input=SCRIPT, check=True, capture_output=True, text=True, timeout=120
        )
        assert (done.stdout, done.stderr) == ("42\n", "")


@on_linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["kill", "terminate", "interrupt"])
async def test_workers_end_with_the_process_that_asked(number: signal.Signals) -> None:
    command = [sys.executable, "-c", "import signal; signal.signal(2, signal.default_int_handler)\n" + SCRIPT, "busy"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline() == "42\n"
            assert process.stderr.readline() == "at work\n"
            async with asyncio.timeout(60):
                while len(pids := descendants(process.pid)) < 7:  # three at work, their keepers, and the program that forks them
                    await asyncio.sleep(0.05)
            os.killpg(process.pid, number)  # as a terminal does, to the whole group
            process.wait(60)
            await end_of(pids)
            assert "forking" not in process.stderr.read()
        finally:
            process.kill()
