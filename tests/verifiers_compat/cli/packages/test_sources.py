"""The modules of a package that are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verifiers_compat.cli.packages.reports import LOADER
from verifiers_compat.cli.packages.check import Report, check_target
from verifiers_compat.cli.packages.targets import open_target
from vfgym.errors import ConfigurationError


def test_only_what_the_environment_imports_is_read(write: Callable[..., Path]) -> None:
    """Its own module, whatever form it has, and what that imports; tests and scripts are not."""
    folder = write(
        "two-files",
        {
            "two_files/__init__.py": "from .env import load_environment",
            "two_files/env.py": f"from two_files import parts\nfrom .deep.more import x\n{LOADER}",
            "two_files/parts.py": "import verifiers as vf\nvf.Rubric",
            "two_files/deep/__init__.py": "",
            "two_files/deep/more.py": "from .. import parts\nimport verifiers as vf\nvf.Parser",
            "two_files/unused.py": "import verifiers as vf\nvf.BrowserEnv",
            "tests/test_it.py": "import pytest, no_such",
        },
    )
    with open_target(str(folder), Path("environments")) as target:
        report = check_target(target)
    assert report.is_complete
    assert report.offered == ["verifiers.Parser", "verifiers.Rubric"]
    assert report.imports == []


@pytest.mark.parametrize("path", ["src/under_src/__init__.py", "src/under_src.py", "other_name.py"])
def test_the_module_is_found_where_it_may_be(write: Callable[..., Path], path: str) -> None:
    write("under-src", {path: "import verifiers as vf\nvf.Rubric" + LOADER})
    with open_target("under-src", Path("environments")) as target:
        report = check_target(target)
    assert report.is_complete
    assert report.offered == ["verifiers.Rubric"]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "no module 'none_here', and none with a function load_environment, is in the package"),
        ({"none_here.py": "x = 1"}, "none_here.py has no function load_environment"),
    ],
)
def test_a_package_without_an_environment_is_incomplete(write: Callable[..., Path], files: dict[str, str], problem: str) -> None:
    write("none-here", files)
    with open_target("none-here", Path("environments")) as target:
        report = check_target(target)
    assert report.problems == [problem]
    assert not report.is_complete


def test_modules_that_are_not_python_are_an_error(check: Callable[..., Report]) -> None:
    with pytest.raises(ConfigurationError, match=r"word_count.py is not Python that can be read here: .*line 1"):
        check("print 'x'")
    check("'\\d'")  # a warning of Python's, which is for its author
