"""What the program behind `Workers` makes of a call: bytes that tell its result or its exception."""

from __future__ import annotations

import json
import pickle
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from vfgym.workers import forking


@pytest.fixture(autouse=True)
def _own_timers() -> Iterator[None]:
    """Give back the timer that limits the time of a test."""
    before = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.setitimer(signal.ITIMER_REAL, *before)


def job(function: str, *arguments: Any, module: str = __name__) -> bytes:
    return pickle.dumps((module, function, arguments))


class Own(Exception):
    """Cannot be made again from its pickle."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


class Calls:
    """Functions of a class, which are named by their path."""

    @staticmethod
    def difference(one: int, other: int) -> int:
        return one - other


def fail(kind: type[BaseException], *arguments: Any) -> None:
    raise kind(*arguments)


def test_a_result_is_told_as_json_or_as_a_pickle() -> None:
    assert forking.call_as_json(job("Calls.difference", 5, 2)) == b'{"result": 3}'
    assert pickle.loads(forking._outcome(job("Calls.difference", 5, 2))) == (3, None)
    assert forking.call_as_json(job("getenv", "NO_SUCH_VARIABLE", module="os")) == b'{"result": null}'


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ((ValueError, "odd"), {"kind": "ValueError", "text": "odd", "repr": "ValueError('odd')"}),
        ((Own, "a", "b"), {"kind": "Own", "text": "a b", "repr": "Own('a b')"}),
        ((SystemExit, 3), {"kind": "SystemExit", "text": "3", "repr": "SystemExit(3)"}),
        ((KeyboardInterrupt,), {"kind": "KeyboardInterrupt", "text": "", "repr": "KeyboardInterrupt()"}),
    ],
)
def test_an_exception_is_told_as_json_by_its_texts(error: Any, said: dict[str, str]) -> None:
    told = json.loads(forking.call_as_json(job("fail", *error)))["error"]
    assert told.pop("traceback").startswith("Traceback (most recent call last)")
    assert told == said


def test_long_texts_of_an_exception_are_told_by_their_ends() -> None:
    told = json.loads(forking.call_as_json(job("fail", ValueError, "a" * 20_000 + "b")))["error"]
    assert told["text"] == "a" * 9_999 + "b"
    assert (len(told["repr"]), len(told["traceback"])) == (10_000, 10_000)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        ((ValueError, "odd"), ValueError, "odd"),
        ((Own, "a", "b"), RuntimeError, f"{__name__}.Own: a b"),
        ((SystemExit, 3), RuntimeError, "builtins.SystemExit: 3"),
        ((KeyboardInterrupt,), RuntimeError, "builtins.KeyboardInterrupt: "),
        ((ValueError, lambda: None), RuntimeError, "builtins.ValueError: <function"),
    ],
)
def test_an_exception_is_pickled_where_who_asked_can_raise_it(error: Any, kind: type[Exception], text: str) -> None:
    result, told = pickle.loads(_outcome_of(*error))
    assert (result, type(told)) == (None, kind)
    assert str(told).startswith(text)
    assert kind is RuntimeError or "In a worker process: Traceback" in told.__notes__[0]


def _outcome_of(*error: Any) -> bytes:
    """Return what is told of a call that raises something, which need not be picklable itself."""
    forking.to_be_raised = error  # type: ignore[attr-defined]
    try:
        return forking._outcome(job("raise_it"))
    finally:
        del forking.to_be_raised  # type: ignore[attr-defined]


def raise_it() -> None:
    fail(*forking.to_be_raised)  # type: ignore[attr-defined]
