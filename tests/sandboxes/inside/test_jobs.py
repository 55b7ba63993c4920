"""What is kept of what a process prints, and what is answered of commands that can't be started and of cells."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator

import pytest

from vfgym.sandboxes.inside.jobs import Output, describe_cell, describe_failure


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield reading, writing
    os.close(reading)


def test_the_beginning_of_an_output_is_kept_and_the_rest_is_dropped(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = Output(reading, most=5)
    assert output.read() is None, "there is nothing now"
    os.write(writing, b"abc")
    assert (output.read(), output.is_cut) == (3, False)
    os.write(writing, b"de")
    assert (output.read(), output.is_cut) == (2, False), "so much is kept"
    os.write(writing, b"f")
    assert (output.read(), output.is_cut) == (1, True)
    os.write(writing, b"gh")
    os.close(writing)
    assert (output.read(), output.read()) == (2, 0), "it is read to its end all the same"
    assert base64.b64decode(output.take()) == b"abcde"


def test_what_was_taken_is_forgotten_and_makes_room(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = Output(reading, most=3)
    for text in (b"abc", b"def"):
        os.write(writing, text)
        output.read()
        assert base64.b64decode(output.take()) == text
    assert not output.is_cut
    assert output.take() == ""
    os.close(writing)


@pytest.mark.parametrize(
    ("error", "code"), [(FileNotFoundError(2, "No such file"), 127), (PermissionError(13, "Denied"), 126), (OSError("x"), 126)]
)
def test_a_command_that_can_not_be_started_has_the_exit_code_of_shells(error: OSError, code: int) -> None:
    described = describe_failure(error)
    assert base64.b64decode(described.pop("stderr")).decode() == f"{error}\n"
    assert described == {"exit_code": code, "stdout": "", "timed_out": False, "truncated": False}


def test_a_cell_that_has_printed_nothing_is_described_whole() -> None:
    described = describe_cell({"count": 3}, value="1")
    assert (described["value"], described["traceback"], described["count"]) == ("1", None, 3)
    described = describe_cell({"count": 0}, trace="no")
    assert (described["value"], described["traceback"], described["count"]) == (None, "no", 0)
    assert not any(described[name] for name in ("stdout", "stderr", "timed_out", "state_is_lost", "truncated"))
