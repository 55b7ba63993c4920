"""The report for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verifiers_compat.cli.packages.reports import LOADER
from verifiers_compat.cli.commands.install import main
from verifiers_compat.cli.packages.check import Report
from verifiers_compat.cli.packages.report import report_lines


def run_install(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_the_report_for_people(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """It fits 80 columns, and the exit code says whether anything is missing. Nothing of the package runs."""
    code = "import verifiers as vf\nimport library_of_mine\nfrom datasets import load_dataset\n1 / 0\nclass Game(vf.GymEnv):\n    pass\n"
    write("word-count", {"word_count.py": code + "vf.ensure_keys(['MY_VARIABLE'])\nload_dataset('org/data')\nvf.BrowserEnv" + LOADER})
    assert run_install("--check", "word-count") == 1
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    words = " ".join(out.split())
    for expected in (
        "verifiers, here GymEnv, ensure_keys",
        "BrowserEnv (word_count.py:9): it drives browsers of a hosted service",
        "word_count.Game refines GymEnv",
        "Here: a model call is a move.",
        "library_of_mine (word_count.py:2): not installed, and the package does not require it. Run: pip install library_of_mine",
        "MY_VARIABLE: not set (word_count.py:7)",
        "org/data (word_count.py:8)",
        "Something that it uses is missing",
    ):
        assert expected in words
    write("word-count", {"word_count.py": "import left_pad" + LOADER}, ["no-such-distribution"])
    assert run_install("--check", "word-count") == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "as far as can be said before what it requires is installed" in " ".join(out.split())
    write("word-count", {"word_count.py": "import verifiers as vf\nvf.Rubric" + LOADER})
    assert run_install("--check", "word-count") == 0
    assert capsys.readouterr().out.endswith("Everything that it uses is here, or comes with it.\n")


def test_what_a_package_goes_on_without_has_a_section_of_its_own(check: Callable[..., Report]) -> None:
    """Names of one reason share a line; of many places the first three are told."""
    code = "import verifiers as vf\nvf.BrowserEnv\n" + "vf.Nope\n" * 5 + "try:\n    vf.Maybe\nexcept AttributeError: ...\n"
    sections = "\n".join(report_lines(check(code))).split("\n\n")
    [missing] = [section for section in sections if section.startswith("verifiers, missing or in conflict\n")]
    [optional] = [section for section in sections if section.startswith("verifiers, missing, and the package goes on without\n")]
    assert "Nope (word_count.py:3, word_count.py:4, word_count.py:5 and 2 more): " in " ".join(missing.split())
    assert ("BrowserEnv" in missing, "Maybe" in missing) == (True, False)
    assert ("BrowserEnv" in optional, "Maybe (word_count.py:9)" in optional) == (False, True)
