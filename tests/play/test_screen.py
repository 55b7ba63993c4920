"""What is shown on the terminal."""

from __future__ import annotations

import pytest

from vfgym.play import Screen


def test_boards_are_kept_and_sentences_broken_at_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    board = "| a | b | c | d | e | f |\n+---+---+---+---+---+---+\n 1  2  3  4  5  6  7  8"
    screen.say(f"A sentence that is longer than that.\n{board}\x1b[2J")
    assert capsys.readouterr().out == f"A sentence that is\nlonger than that.\n{board}\\x1b[2J\n"
    screen.say_list(["col 1", "col 2", "col 3"], before="(", after=")")
    assert capsys.readouterr().out == "(col 1, col 2,\ncol 3)\n"
