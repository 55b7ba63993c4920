"""What is printed holds no secret, and no character that works a terminal."""

from __future__ import annotations

import pytest

from vfgym.output.redaction import Secret
from vfgym.output.terminal import display_text, echo, echo_traceback, escape, one_line

CONTROLS = "\x1b\x00\x07\x08\x0b\x0c\x0e\x1f\x7f\x80\x9b\x9f\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\ud800\udfff"


@pytest.mark.parametrize("character", CONTROLS)
def test_characters_that_work_a_terminal_are_written_out(character: str) -> None:
    safe = escape(f"before{character}after")
    assert safe == f"before{character.encode('unicode_escape').decode()}after"
    safe.encode()  # any stream can write it


@pytest.mark.parametrize("text", ["plain", "two\nlines", "a\ttab", "a line\r\nof Windows", "größer, 大, 🎲"])
def test_text_of_any_language_stays(text: str) -> None:
    assert escape(text) == text


def test_a_return_cannot_overwrite_its_line_and_one_line_is_one_line() -> None:
    assert escape("reward 0.0\rreward 1.0") == r"reward 0.0\rreward 1.0"
    assert one_line("a\tb\r\nc\rd") == r"a\tb\r\nc\rd"


def test_what_is_shown_is_redacted_before_it_is_escaped() -> None:
    secret = Secret("key-\x1b-1234567890")
    assert display_text(f"the key is {secret.encode().decode()}\x1b") == r"the key is ***\x1b"


def test_echo_prints_values_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    secret = Secret("sk-echo-1234567890")
    echo("key", str.__str__(secret), 7, end="!\n")
    echo("\x1b[2J", to_stderr=True)
    printed = capsys.readouterr()
    assert (one_line(f"a\n{secret.encode().decode()}"), printed.out) == ("a\\n***", "key *** 7!\n")
    assert printed.err == "\\x1b[2J\n"


def test_a_traceback_holds_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    secret = Secret("sk-trace-1234567890")
    try:
        raise ValueError(f"refused: {str.__str__(secret)}\x07")
    except ValueError as error:
        echo_traceback(error)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Traceback (most recent call last)")
    assert printed.err.endswith("ValueError: refused: ***\\x07\n")
