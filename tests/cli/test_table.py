"""Tables are aligned, fit the width that there is, and break no number and no word."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess

import pytest

from tests.cli.cases import GAME, SECONDS, cells, program
from tests.commands import run_vfgym
from vfgym.cli.table import output_width, print_table, render_table, wrap_text

ROWS = [["random", "0.1 ± 0.2", "a text of several words that may be wrapped"], ["", "22", ""]]


def test_columns_are_aligned_and_nothing_trails() -> None:
    assert render_table(["a", "long name"], [["value", "1"], ["", "22"]]) == "a      long name\nvalue  1\n       22"


@pytest.mark.parametrize("width", [0, 1, 12, 30, 45, 60, 200, None])
def test_a_table_fits_its_width_and_keeps_every_word(width: int | None) -> None:
    shown = render_table(["agent", "reward", "remark"], ROWS, width)
    assert sorted(word.rstrip(":") for word in shown.split() if word not in ("agent", "reward:", "remark:", "reward", "remark")) == sorted(
        word for row in ROWS for cell in row for word in cell.split()
    )
    longest = len("  remark:")
    assert max(map(len, shown.splitlines())) <= max(width if width is not None else 1000, longest)
    is_table = shown.startswith("agent ")
    assert is_table is (width is None or width >= 45)


def test_long_texts_are_wrapped_before_a_table_becomes_blocks() -> None:
    lines = render_table(["agent", "reward", "remark"], ROWS, 45).splitlines()
    assert cells(lines[1])[:2] == ["random", "0.1 ± 0.2"]
    assert len(lines) > 3
    assert all(line.startswith(" " * 19) for line in lines[2:-1])


@pytest.mark.parametrize(("columns", "width"), [("45", 45), ("0", None), ("", None), ("wide", None), ("-3", None)])
def test_where_there_is_no_terminal_the_environment_may_say_the_width(
    columns: str, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output_width() == width


def test_texts_are_wrapped_between_words_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "two well-known words " + "x" * 30
    assert wrap_text(text) == text
    monkeypatch.setenv("COLUMNS", "16")
    assert wrap_text(text) == "two well-known\n  words\n  " + "x" * 30


def test_what_cells_hold_is_one_line_that_works_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a\nb"], [["c\x1b[2J\td"]])
    assert capsys.readouterr().out == "a\\nb\nc\\x1b[2J\\td\n"


@pytest.mark.parametrize("width", [pytest.param(30, marks=pytest.mark.exhaustive), 45])
def test_what_commands_print_is_readable_at_any_width(width: int) -> None:
    """Lines break between words: no number is cut, and no word is spelled one letter a line."""
    evaluation = ("eval", GAME, "-a", "random", "-n", "5", "-r", "2", "--no-save")
    header, row = map(cells, run_vfgym(*evaluation).stdout.splitlines()[:2])
    narrow = run_vfgym(*evaluation, COLUMNS=str(width)).stdout
    expected = " ".join(["random", *(f"{column}: {cell}" for column, cell in zip(header[1:-1], row[1:-1], strict=True))])
    assert " ".join(narrow.split()).startswith(expected)
    assert all(len(line) <= width for line in narrow.splitlines()[: len(header)])
    for command in (("list", "*Lake*"), ("info", GAME), ("check", GAME)):
        lines = run_vfgym(*command, COLUMNS=str(width)).stdout.splitlines()
        too_long = [line for line in lines if len(line) > width]
        if command[0] != "info":  # which goes on with an example as it is
            assert all(len(line.split()) == 1 or ":" in line for line in too_long), too_long
        words = set(run_vfgym(*command).stdout.split())
        assert {word for line in lines for word in line.split()} - words <= {"description:", "kept:", "detail:"}


def test_a_table_on_a_narrow_terminal_is_blocks() -> None:
    leader, follower = pty.openpty()
    env = {**os.environ, "COLUMNS": "45", "TERM": "xterm"}
    process = subprocess.Popen(program("list", "*Lake8x8*"), stdout=follower, stderr=subprocess.DEVNULL, env=env)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal whose other side is closed
        while select.select([leader], [], [], SECONDS)[0] and (part := os.read(leader, 4096)):
            shown += part
    os.close(leader)
    process.wait(SECONDS)
    first, *further = shown.decode().split("\r\n")[:3]
    assert first == "gymnasium/FrozenLake8x8-v1"
    assert further == ["  description: game of Gymnasium's toy_text,", "    discrete actions"]
