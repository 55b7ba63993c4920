"""One cell in the interpreter of cells: its value, its traceback, what is cut; and the frames by which it is asked."""

from __future__ import annotations

import json
import signal
import socket
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vfgym.sandboxes.inside import cells as imported


def as_inside() -> Any:
    """Return the module as it is made in a sandbox, where its name stands for its file (`vfgym.sandboxes.inside.jobs.BOOTSTRAP`)."""
    module = types.ModuleType(imported.__name__)
    exec(compile(Path(imported.__file__).read_text(encoding="utf-8"), module.__name__, "exec"), module.__dict__)
    return module


cells = as_inside()


@pytest.fixture(autouse=True)
def own_interrupt() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def run(code: str, namespace: dict[str, Any] | None = None, number: int = 1, most: int = 1000) -> dict[str, Any]:
    result: dict[str, Any] = cells._run(code, number, {} if namespace is None else namespace, most)
    return result


@pytest.mark.parametrize(
    ("code", "value"),
    [
        *(("1 + 1", "2"), ("x = 1\nx", "1"), ("x = 1", None), ("None", None), ("0", "0"), ("''", "''"), ("", None)),
        *(("if True:\n    5", None), ("'\\ud800'", r"'\ud800'"), ("'ä'", "'ä'")),
    ],
)
def test_the_value_is_that_of_the_expression_that_ends_it(code: str, value: str | None) -> None:
    assert run(code) == {"value": value, "traceback": None, "is_cut": False}


def test_what_cells_define_stays_and_the_last_value_is_an_underscore() -> None:
    namespace: dict[str, Any] = {}
    run("def double(x): return 2 * x", namespace)
    assert run("double(21)", namespace)["value"] == "42"
    run("None", namespace)
    assert run("_ + 1", namespace)["value"] == "43", "None is no value to keep"


def test_a_long_value_is_cut_and_says_so() -> None:
    assert run("'x' * 8", most=10) == {"value": "'xxxxxxxx'", "traceback": None, "is_cut": False}
    assert run("'x' * 9", most=10) == {"value": "'xxxxxxxxx", "traceback": None, "is_cut": True}


def test_a_traceback_names_the_cells_lines_and_none_of_ours() -> None:
    namespace: dict[str, Any] = {}
    run("def fails():\n    return 1 / 0", namespace, number=1)
    trace = run("fails()", namespace, number=2)["traceback"]
    assert 'File "<cell 2>", line 1' in trace
    assert 'File "<cell 1>", line 2, in fails' in trace
    assert "return 1 / 0" in trace
    assert trace.endswith("ZeroDivisionError: division by zero")
    assert cells.__name__ not in trace


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "raise KeyboardInterrupt", "(", "raise type('E', (BaseException,), {})"])
def test_whatever_a_cell_raises_is_its_traceback(code: str) -> None:
    result = run(code)
    assert result["value"] is None
    assert result["traceback"]


def test_an_error_without_a_text_is_shown_by_its_name_and_a_long_one_by_its_end() -> None:
    silent = "class Silent(Exception):\n    def __str__(self): raise ValueError\nraise Silent"
    assert "Silent" in run(silent)["traceback"]
    assert run("raise ValueError('x' * 100 + 'the end')", most=20)["traceback"].endswith("the end")
    assert len(run("raise ValueError('x' * 100)", most=20)["traceback"]) == 20


def test_an_interrupt_ends_the_cell_and_nothing_between_cells() -> None:
    result = run("import signal\nsignal.raise_signal(2)\nreached = True")
    assert result["traceback"].endswith("KeyboardInterrupt")
    signal.raise_signal(signal.SIGINT)  # nothing runs
    run("import signal\nsignal.signal(2, signal.SIG_IGN)")
    assert run("import signal\nsignal.raise_signal(2)")["traceback"].endswith("KeyboardInterrupt"), "a cell's own handler is its own"


def test_a_cell_that_breaks_the_streams_breaks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    assert run("import sys\nsys.stdout = None\n1")["value"] == "1"


def test_frames_are_a_length_and_json_however_they_arrive() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        cells._send(ours, {"a": "ä"})
        cells._send(ours, [0])
        assert cells._receive(theirs) == {"a": "ä"}
        assert cells._receive(theirs) == [0]
        data = json.dumps({"long": "x" * 1000}).encode()
        for byte in len(data).to_bytes(4, "big"):
            ours.sendall(bytes([byte]))
        ours.sendall(data)
        assert cells._receive(theirs) == {"long": "x" * 1000}
