"""Which tests run which lines, and that a fault is shown to those that run its line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray")

from scripts import mutants
from scripts.mutation.coverage_map import CoverageMap

ROOT = Path(__file__).parents[3]
LIBRARY = """LIMIT = 3

def f(x):
    if x > LIMIT:
        return max(
            x,
            7,
        )
    return 0
"""
SMALL = """import pytest
from vfgym.a import f

@pytest.mark.parametrize("x", [1, 2])
def test_small(x):
    assert f(x) == 0
"""
FILES = {
    "vfgym/__init__.py": "",
    "vfgym/a.py": LIBRARY,
    "tests/test_a.py": SMALL,
    "tests/test_b.py": "from vfgym.a import f\n\ndef test_large(): assert f(8) == 8\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['--import-mode=importlib']\npythonpath = ['.']\n",
}


ALONE, XDIST = pytest.param([], id="alone", marks=pytest.mark.exhaustive), pytest.param(["-p", "xdist", "-n", "1"], id="xdist")


@pytest.fixture(scope="module", params=[ALONE, XDIST])
def project(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> mutants.Project:
    root = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    code = f"import sys; sys.path[:0] = [{str(root)!r}, {str(ROOT)!r}]; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-p", "scripts.mutation.coverage_map", "--coverage-map", str(root / "map"), *request.param]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-P", "-c", code, *options, "tests"]
    subprocess.run(command, cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)
    return mutants.Project(root, covering=CoverageMap(root / "map", root))


def test_a_line_has_the_tests_that_run_it(project: mutants.Project) -> None:
    covering = project.covering
    assert covering is not None
    assert covering.tests_of("vfgym/a.py", [4]) == ["tests/test_a.py::test_small", "tests/test_b.py::test_large"]
    assert covering.tests_of("vfgym/a.py", [9]) == ["tests/test_a.py::test_small"]
    assert covering.tests_of("vfgym/a.py", [5, 9]) == ["tests/test_a.py::test_small", "tests/test_b.py::test_large"]
    assert covering.tests_of("vfgym/a.py", [1]) == []  # as it is imported
    assert covering.tests_of("vfgym/b.py", [1]) == []


@pytest.mark.parametrize(
    ("line", "rounds"),
    [
        (7, {"own": [("tests/test_a.py",)], "folder": [("tests/test_b.py::test_large",), ("tests/test_b.py",)], "suite": "large"}),
        (9, {"own": [("tests/test_a.py::test_small",), ("tests/test_a.py",)], "folder": [("tests/test_b.py",)], "suite": "all"}),
        (1, {"own": [("tests/test_a.py",)], "folder": [("tests/test_b.py",)], "suite": "all"}),
    ],
)
def test_tests_that_run_the_line_come_first(project: mutants.Project, line: int, rounds: dict[str, object]) -> None:
    source = project.read("vfgym/a.py")
    mutant = mutants.Mutant("vfgym/a.py", "Number", line, source, source)
    suite = {"large": [("tests/test_b.py::test_large",)], "all": [mutants.SUITE]}
    expected = {**rounds, "suite": suite[str(rounds["suite"])]}
    assert {stage: [*project.rounds(mutant, stage)] for stage in mutants.STAGES} == expected


@pytest.mark.parametrize(
    ("line", "lines"),
    [(1, [1]), (2, [2, 3, 4]), (5, [5]), (6, [6]), (7, [7])],
)
def test_the_statement_of_a_line(line: int, lines: list[int]) -> None:
    source = "import a\nif f(\n    a,\n):\n    b = 1\nelse:\n    c = 2\n"
    assert [*mutants.list_statement(source, line)] == lines
