"""Marks on an author's methods, the process-wide teardown registry, and that the library installs no signal handler."""

from __future__ import annotations

import functools
import signal
import threading
from typing import Any

import pytest

from tests.programs import run_python
from vfgym import MultiTurnEnv, SingleTurnEnv, State, cleanup, lifecycle, stop, teardown
from vfgym.aio.steps import run_sync
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import (
    Mark,
    blocking,
    declared_range,
    discover_decorated,
    discover_marks,
    forget_teardown,
    is_blocking,
    register_teardown,
    run_all_teardowns,
    run_cleanups,
)

ROWS = [{"question": "?"}]


# Marks


class Base:
    @stop
    def b(self) -> str:
        return "b"

    @stop()
    def a(self) -> str:
        return "a"

    @stop(priority=10)
    async def late_name(self) -> str:
        return "late_name"

    @cleanup(priority=-1, stage="group")
    def swept(self) -> None: ...

    @lifecycle.reward(weight=0.5)
    @lifecycle.metric
    def both(self) -> float:
        return 1.0

    @stop
    def dropped(self) -> None: ...

    def plain(self) -> None: ...


class Derived(Base):
    def dropped(self) -> None: ...

    @stop(priority=20)
    def b(self) -> str:
        return "derived b"


def test_methods_are_found_by_priority_then_name() -> None:
    assert [marked.name for marked in discover_marks(Base, "stop")] == ["late_name", "a", "b", "dropped"]
    assert [marked.method() for marked in discover_decorated(Base(), "stop")[1:3]] == ["a", "b"]


def test_inherited_marks_count_and_an_override_without_the_mark_is_out() -> None:
    found = discover_decorated(Derived(), "stop")
    assert ([marked.name for marked in found], found[0].method()) == (["b", "late_name", "a"], "derived b")


def test_a_mark_says_what_its_decorator_said() -> None:
    assert discover_marks(Base, "cleanup")[0].mark == Mark("cleanup", -1, "group")
    assert discover_marks(Base, "reward")[0].mark == Mark("reward", weight=0.5)
    assert [marked.name for kind in ("reward", "metric") for marked in discover_marks(Base, kind)] == ["both", "both"]
    assert discover_marks(Base, "setup") == []


def test_a_decorated_method_stays_the_function_it_was() -> None:
    def method(self: Any) -> None: ...

    for decorator in (stop, stop(priority=3), cleanup, teardown, lifecycle.setup, lifecycle.update, lifecycle.advantage):
        assert decorator(method) is method


def test_plain_functions_are_marked_as_blocking_and_so_is_what_wraps_them() -> None:
    class Tools:
        @blocking
        def method(self) -> float:
            return 1.0

    def function() -> float:
        return 1.0

    async def look() -> str:
        return "seen"

    assert not is_blocking(function)
    assert blocking(function) is function

    @functools.wraps(function)
    def wrapped() -> float:
        return function()

    assert all(map(is_blocking, (function, wrapped, Tools().method, functools.partial(function))))
    with pytest.raises(ConfigurationError, match="look is async"):
        blocking(look)

    class Called:
        @blocking
        def __call__(self) -> float:
            return 1.0

    assert is_blocking(Called())
    assert not is_blocking(Called)


@pytest.mark.parametrize("wrong", [5, "a", True])
def test_arguments_of_a_decorator_have_names(wrong: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        stop(wrong)
    assert str(raised.value) == f"@stop takes its arguments by name (priority=..., ...), got {wrong!r}"


def test_a_mark_says_each_of_its_arguments() -> None:
    class Marked:
        @lifecycle.reward(priority=3, stage="group", weight=0.0, range=(-1, 2))
        def scored(self) -> float:
            return 1.0

    assert [marked.mark for marked in discover_marks(Marked, "reward")] == [Mark("reward", 3, "group", 0.0, (-1, 2))]
    assert Mark("metric") == ("metric", 0, "rollout", None, None)


def test_the_range_of_a_function_is_what_its_last_reward_mark_says() -> None:
    def of(*decorators: Any) -> Any:
        def func() -> float:
            return 1.0

        for decorate in decorators:
            decorate(func)
        return func

    twice = of(lifecycle.reward(range=(0, 1)), lifecycle.reward(range=(0, 2)), lifecycle.reward)
    assert (declared_range(twice), declared_range(functools.partial(functools.partial(twice)))) == ((0, 2), (0, 2))
    assert [declared_range(func) for func in (of(), of(lifecycle.reward), of(lifecycle.metric(range=(0, 1))), print)] == [None] * 4


def test_what_fails_at_the_end_of_a_rollout_is_recorded_also_where_something_ends_the_run() -> None:
    def fail(error: BaseException) -> Any:
        def call(*args: Any) -> None:
            called.append(args)
            raise error

        return call

    called: list[Any] = []
    state: dict[str, Any] = {}
    assert run_sync(run_cleanups([("fine", lambda *args: called.append(args))], state, 1, 2)) == {}
    assert state == {}
    first, second = OSError("a"), KeyError("b")
    assert run_sync(run_cleanups([("a", fail(first)), ("b", fail(second))], state, state)) == {"a": first, "b": second}
    with pytest.raises(KeyboardInterrupt):
        run_sync(run_cleanups([("a", fail(ValueError("c"))), ("d", fail(KeyboardInterrupt())), ("e", fail(SystemExit(3)))], state))
    assert state == {"cleanup_errors": {"a": "ValueError('c')", "b": "KeyError('b')", "e": "RuntimeError('SystemExit(3) was raised')"}}
    assert called == [(1, 2), (state,), (state,), (), (), ()]


# Teardown


class Holder:
    def __init__(self, order: list[str], name: str, error: BaseException | None = None) -> None:
        self.order, self.name, self.error = order, name, error

    def run_teardown(self) -> None:
        self.order.append(self.name)
        if self.error is not None:
            raise self.error


def test_owners_are_torn_down_once_newest_first_and_a_failing_one_keeps_none_from_it(caplog: pytest.LogCaptureFixture) -> None:
    order: list[str] = []
    holders = [Holder(order, "first"), Holder(order, "second", OSError("the disk is gone")), Holder(order, "third"), Holder(order, "gone")]
    for holder in holders:
        register_teardown(holder)
    forget_teardown(holders[3])
    run_all_teardowns()
    run_all_teardowns()
    assert order == ["third", "second", "first"]
    assert "the disk is gone" in caplog.text
    order.clear()
    for holder in (Holder(order, "a"), Holder(order, "b", KeyboardInterrupt()), Holder(order, "c", SystemExit(3))):
        register_teardown(holder)
    with pytest.raises(KeyboardInterrupt):
        run_all_teardowns()
    assert order == ["c", "b"]
    run_all_teardowns()
    assert order == ["c", "b", "a"]
    forget_teardown(holders[0])


def test_everything_is_torn_down_when_the_process_exits_also_by_an_exception() -> None:
    program = """
        import asyncio
        import vfgym

        class Holder:
            @vfgym.teardown
            async def release(self):
                await asyncio.sleep(0)
                print(type(self).__name__, flush=True)

        class Env(Holder, vfgym.SingleTurnEnv): ...
        class Given(Holder, vfgym.Rubric): ...
        class Added(Holder, vfgym.Rubric): ...

        rows = [{"question": "?"}]
        envs = [Env(rows), vfgym.SingleTurnEnv(rows, rubric=Given()), vfgym.SingleTurnEnv(rows), Env(rows)]
        envs[2].add_rubric(Added())
        envs[3].close()
        print("closed", flush=True)
        raise SystemExit(3)
    """
    done = run_python(program, "-W", "error")
    assert (done.stdout.split(), done.returncode) == (["Env", "closed", "Added", "Given", "Env"], 3)


def test_a_process_that_sigterm_ends_is_torn_down_where_the_application_says_so() -> None:
    """A library installs no handlers; one line of the application turns the signal into an exit."""
    program = """
        import os, signal, sys
        import vfgym

        class Holding(vfgym.SingleTurnEnv):
            @vfgym.teardown
            def release(self):
                print("released", flush=True)

        env = Holding([{"question": "?"}])
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    """
    done = run_python(program, "-W", "error")
    assert (done.stdout, done.returncode) == ("released\n", 143)


class Everything(MultiTurnEnv):
    def env_response(self, messages: list[Any], state: State) -> str:
        return "on"

    @stop
    def done(self, state: State) -> bool:
        return False

    @cleanup
    def tidy(self, state: State) -> None: ...

    @teardown
    async def release(self) -> None: ...


def test_an_environment_can_be_made_and_played_in_any_thread_and_leaves_signals_alone() -> None:
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD]
    before = [signal.getsignal(number) for number in signals]
    errors: list[BaseException] = []

    def play() -> None:
        try:
            env = Everything(dataset=ROWS)
            env.reset(seed=0)
            env.step("hi")
            env.close()
            SingleTurnEnv(ROWS).close()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=play)
    thread.start()
    thread.join()
    play()
    assert (errors, [signal.getsignal(number) for number in signals]) == ([], before)


def test_a_definition_that_is_thrown_away_without_teardown_is_not_kept() -> None:
    """Only what has a teardown handler is registered, and closing takes it off again."""
    before = dict(lifecycle._to_tear_down)
    SingleTurnEnv(ROWS)
    assert lifecycle._to_tear_down == before
    env = Everything(dataset=ROWS)
    assert len(lifecycle._to_tear_down) == len(before) + 1
    env.close()
    assert lifecycle._to_tear_down == before
