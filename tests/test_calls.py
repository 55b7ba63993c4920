"""Calling authors' functions: by the names they declare, and what becomes of what they raise."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from vfgym.calls import CallPlan, Ready, ReadyList, ends_run, function_name, is_async, is_awaitable, maybe_await, rollout_failure

GIVEN = {"a": 1, "b": 2, "c": 0, "func": 4}


def one(a: Any) -> Any:
    return a


def in_order(b: Any, a: Any) -> Any:
    return b, a


def with_defaults(b: Any, missing: Any = "default", *, a: Any = None) -> Any:
    return b, missing, a


def positional(b: Any, /, a: Any) -> Any:
    return b, a


def positional_and_any(b: Any, /, **others: Any) -> Any:
    return b, others


def everything(**others: Any) -> Any:
    return others


@pytest.mark.parametrize(
    ("func", "result"),
    [
        *[(one, 1), (in_order, (2, 1)), (with_defaults, (2, "default", 1)), (positional, (2, 1))],
        *[(positional_and_any, (2, {"a": 1, "c": 0, "func": 4})), (everything, GIVEN), (lambda: "nothing", "nothing"), (lambda c: c, 0)],
        *[(lambda *rest, a: (rest, a), ((), 1)), (lambda a=7, /, d=8: (a, d), (1, 8)), (lambda d=7, b=8, /: (d, b), (7, 2))],
        *[(lambda d=7: d, 7), (functools.partial(in_order, 5), (5, 1)), (functools.partial(positional, 5), (5, 1))],
    ],
)
def test_a_function_is_called_with_what_it_asks_for(func: Any, result: Any) -> None:
    assert CallPlan(func)(GIVEN) == result


def test_what_is_missing_without_a_default_is_the_functions_own_error() -> None:
    for func in (lambda d: d, lambda a, d: d, lambda d, a, /: d):
        with pytest.raises(TypeError, match="'d'"):
            CallPlan(func)(GIVEN)


def test_a_key_error_of_the_function_is_not_taken_for_a_missing_name() -> None:
    calls = []

    def failing(a: Any, b: Any) -> None:
        calls.append(a)
        raise KeyError("a")

    with pytest.raises(KeyError):
        CallPlan(failing)(GIVEN)
    assert calls == [1]


@pytest.mark.parametrize(
    ("func", "names", "takes_any", "only"),
    [
        (one, ("a",), False, "a"),
        (in_order, ("b", "a"), False, None),
        (everything, (), True, None),
        (positional, ("a",), False, None),
        (lambda *, a: a, ("a",), False, None),
    ],
)
def test_what_a_function_asks_for(func: Any, names: tuple[str, ...], takes_any: bool, only: str | None) -> None:
    plan = CallPlan(func)
    assert (plan.names, plan.takes_any, plan.only) == (names, takes_any, only)


@pytest.mark.parametrize(
    ("wrong", "says"), [(7, "expected a function, got int"), (None, "NoneType"), (dict.fromkeys, "fromkeys"), (min, "min has no signature")]
)
def test_what_cannot_be_called_by_names_is_refused(wrong: Any, says: str) -> None:
    if wrong == dict.fromkeys:
        assert CallPlan(wrong).name == says
        return
    with pytest.raises(TypeError, match=says):
        CallPlan(wrong)


class Object:
    def __call__(self) -> None: ...


class AsyncObject:
    async def __call__(self) -> None: ...


async def coroutine() -> int:
    return 5


def test_names() -> None:
    funcs = [one, functools.partial(functools.partial(one, 1)), Object(), Object().__call__, Object]
    assert [function_name(func) for func in funcs] == ["one", "one", "Object", "__call__", "Object"]


async def test_what_is_async_and_what_must_be_awaited() -> None:
    assert [is_async(func) for func in (coroutine, AsyncObject(), AsyncObject().__call__, functools.partial(coroutine))] == [True] * 4
    assert [is_async(func) for func in (one, Object(), AsyncObject)] == [False] * 3
    awaitable = coroutine()
    assert is_awaitable(awaitable)
    assert await awaitable == 5
    assert is_awaitable(Ready(1))
    assert not any(is_awaitable(value) for value in (None, True, 0, 0.0, "", [], {}, (), object(), type(awaitable)))
    assert [await maybe_await(coroutine), await maybe_await(one, 6), await maybe_await(one, a=Ready(7))] == [5, 6, 7]


async def test_what_ends_a_run() -> None:
    assert ends_run(KeyboardInterrupt())
    assert ends_run(GeneratorExit())
    assert not any(map(ends_run, (ValueError(), SystemExit(), asyncio.CancelledError())))

    async def cancelled() -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            return ends_run(error)
        raise AssertionError

    task = asyncio.ensure_future(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    assert await task
    assert not await asyncio.to_thread(ends_run, asyncio.CancelledError())


def test_what_ended_a_rollout_is_an_exception() -> None:
    error, exit_ = ValueError("x"), SystemExit(3)
    assert rollout_failure(error) is error
    failure = rollout_failure(exit_)
    assert (type(failure), failure.__cause__, str(failure)) == (RuntimeError, exit_, "SystemExit(3) was raised")
    cancelled = asyncio.CancelledError("elsewhere")
    assert rollout_failure(cancelled).__cause__ is cancelled
    interrupted = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt) as raised:
        rollout_failure(interrupted)
    assert raised.value is interrupted


@pytest.mark.parametrize("ready", [Ready(5), Ready(), ReadyList([1, 2]), ReadyList()])
async def test_what_is_ready_can_be_awaited_more_than_once_and_be_a_task(ready: Any) -> None:
    value = ready.value
    assert [await ready, await ready] == [value, value]
    assert await asyncio.create_task(ready) == value
    with pytest.raises(KeyError):
        ready.throw(KeyError("x"))
    ready.close()
    if isinstance(ready, list):
        assert value is ready
