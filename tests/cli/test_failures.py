"""What is told of an exception to which the user's own code led: its place there; nothing where only libraries are involved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.commands import own_modules
from vfgym.agents.loading import load_agent
from vfgym.cli.environments import make_environment
from vfgym.cli.failures import failure_message


def raised_by(function: Callable[..., Any], *arguments: Any) -> Exception:
    """Return what a call raises, with a traceback that begins in the library: this test would be the user's own code."""
    with own_modules(Path.cwd()), pytest.raises(Exception) as caught:  # noqa: PT011, any exception is told of
        function(*arguments)
    error = caught.value
    assert isinstance(error, Exception)
    while error.__traceback__ is not None and error.__traceback__.tb_frame.f_code.co_filename == __file__:
        error.__traceback__ = error.__traceback__.tb_next
    return error


@pytest.mark.parametrize(
    ("function", "arguments", "place", "last"),
    [
        (load_agent, ["no_python:agent"], "no_python.py", "SyntaxError: invalid syntax"),
        (make_environment, ["no_python:Game-v0", {}], "no_python.py", "SyntaxError: invalid syntax"),
        (load_agent, ["needy:agent"], "needy.py", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        (make_environment, ["needy:Game-v0", {}], "needy.py", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        (make_environment, ["mine:Fails-v0", {}], "mine.py", "RuntimeError: cannot be made"),
    ],
)
def test_the_place_in_own_code_is_told(function: Any, arguments: list[Any], place: str, last: str, directory: Path) -> None:
    (directory / "no_python.py").write_text("agent = ?")
    (directory / "needy.py").write_text("import nowhere_at_all")
    lines = [line for line in (failure_message(raised_by(function, *arguments)) or "").splitlines() if "Traceback" not in line]
    assert lines[0].startswith(f'  File "{directory}/{place}", line ')
    assert lines[-1] == last
    assert not any("site-packages" in line or "vfgym/" in line for line in lines)


@pytest.mark.parametrize("env_id", ["mine:Missing-v0", "mine:Nothing-v0"])
def test_what_gymnasium_says_of_an_id_is_a_line(env_id: str) -> None:
    message = failure_message(raised_by(make_environment, env_id, {}))
    assert message is not None
    assert message.startswith("error: ")
    assert "\n" not in message


def test_of_an_exception_of_libraries_nothing_is_told() -> None:
    assert failure_message(raised_by(gymnasium.spaces.Discrete, -1)) is None
