"""The command as a program: how it ends, what it says of errors, what it imports, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cases import DATASET, GAME
from tests.commands import run_vfgym
from tests.programs import run_python
from vfgym.cli import show


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "leg_counting"], "there is no environment 'leg_counting'. Did you mean `reasoning-gym/leg_counting-v0`"),
        (["check", "nowhere_at_all:CartPole"], "there is no module 'nowhere_at_all'"),
        (["info", "mine:CartPol-v1"], "Did you mean: `CartPole`"),
        (["eval", GAME, "--agent", "randm"], "there is no agent 'randm'"),
        (["eval", GAME, "--agent", "mine:one_argument"], "one_argument takes (observation)"),
        (["eval", GAME, "--num-examples", "many"], "Invalid value for '--num-examples'"),
        (["eval", GAME, "--agent", "random", "--output-dir", "mine.py"], "cannot write results to mine.py"),
        (["info", "mine:Missing-v0"], "error: AttributeError: module 'mine' has no attribute 'missing'"),
        (["check", "mine:Nothing-v0"], "error: TypeError: The environment must inherit from the gymnasium.Env class"),
    ],
)
def test_what_the_user_can_mend_is_one_line(arguments: list[str], message: str) -> None:
    done = run_vfgym(*arguments, exit_code=2)
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_of_an_error_in_own_code_its_place_is_shown(directory: Path) -> None:
    lines = run_vfgym("play", "mine:Fails-v0", exit_code=2).stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{directory}/mine.py", line ')
    assert lines[-1] == "RuntimeError: cannot be made"
    assert len(lines) <= 4


@pytest.mark.parametrize(
    ("arguments", "raised"),
    [(["--debug", "info", "xyzzy"], "ConfigurationError"), (["info", "mine:Fails-v0", "--debug"], "RuntimeError: cannot be made")],
)
def test_debug_shows_the_whole_traceback(arguments: list[str], raised: str) -> None:
    stderr = run_vfgym(*arguments, exit_code=1).stderr
    assert raised in stderr.splitlines()[-1]
    assert "typer" in stderr


def test_debug_is_an_option_and_no_word_anywhere() -> None:
    assert "Traceback" not in run_vfgym("info", "--", "--debug", exit_code=2).stderr


def test_an_exception_of_the_library_itself_has_its_whole_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "print_ids", None)
    stderr = run_vfgym("list", exit_code=1).stderr
    assert "typer" in stderr
    assert stderr.splitlines()[-1].startswith("TypeError: ")


def test_help_and_lists_import_no_package_of_environments() -> None:
    code = """
        import sys, vfgym.cli
        for words in (["--help"], ["list"]):
            sys.argv = ["vfgym", *words]
            try: vfgym.cli.main()
            except SystemExit: pass
            print({"rich", "datasets", "matplotlib", "textarena", "pettingzoo", "reasoning_gym"} & set(sys.modules))
    """
    lines = run_python(code, check=True).stdout.splitlines()
    assert lines.count("set()") == 2
    assert any(line.startswith(DATASET) for line in lines)
