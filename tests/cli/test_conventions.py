"""What commands have in common: JSON without secrets, and how a command line that is wrong or stopped ends."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import typer

from vfgym.cli.conventions import Exit, Options, invoke, print_json
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import Secret

app = typer.Typer()


@app.command()
def ask(name: str, *, number: int = 0) -> None:
    """Ask something."""
    if name == "stop":
        raise typer.Abort
    if name == "fail":
        raise KeyError(number)
    raise typer.Exit(number)


def test_a_value_is_printed_as_json_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    Secret("key-0123456789")
    print_json({"url": "http://x/key-0123456789", "path": Path("a/b"), "nothing": None, "zero": 0, "no number": math.nan})
    shown = capsys.readouterr().out
    expected = {"url": "http://x/***", "path": "a/b", "nothing": None, "zero": 0, "no number": None}
    assert shown == json.dumps(expected, indent=2) + "\n"


@pytest.mark.parametrize(("words", "code"), [(["end"], 0), (["end", "--number", "3"], 3), (["stop"], Exit.INTERRUPTED)])
def test_an_exit_code_is_returned(words: list[str], code: int) -> None:
    assert (invoke(app, Options(), name="ask", arguments=words) or 0) == code


@pytest.mark.parametrize(
    ("words", "message"),
    [([], "Missing argument 'name'"), (["end", "--number", "x"], "Invalid value for '--number'"), (["x", "-z"], "No such option")],
)
def test_a_wrong_command_line_is_the_users_error(words: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        invoke(app, Options(), name="ask", arguments=words)
    assert str(caught.value).endswith("(--help lists what can be given)")


def test_what_a_command_raises_is_not_swallowed() -> None:
    with pytest.raises(KeyError):
        invoke(app, Options(), name="ask", arguments=["fail"])
