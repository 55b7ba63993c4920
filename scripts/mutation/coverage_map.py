"""Which tests run which lines: a plugin of pytest that notes it, and what reads the notes.

usage: python -m pytest -n 2 -p scripts.mutation.coverage_map --coverage-map FOLDER

What tests do in other processes is not noted.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import coverage
import pytest

PACKAGES = ("vfgym", "verifiers_compat")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the folder."""
    parser.addoption("--coverage-map", metavar="FOLDER", type=Path, help="note in a folder which tests run which lines")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to note, in each process that runs tests."""
    folder = config.getoption("--coverage-map")
    if folder is not None and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        folder.mkdir(parents=True, exist_ok=True)
        notes = coverage.Coverage(data_file=str(folder / f"{os.getpid()}.coverage"), source_pkgs=list(PACKAGES), config_file=False)
        config.pluginmanager.register(_Notes(notes))


class _Notes:
    """Notes of one process."""

    def __init__(self, notes: coverage.Coverage) -> None:
        self._notes = notes
        notes.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note the lines that a test runs, by its name without what it is parametrized by."""
        self._notes.switch_context(item.nodeid.partition("[")[0])
        try:
            return (yield)
        finally:
            self._notes.switch_context("")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write the notes."""
        self._notes.stop()
        self._notes.save()


class CoverageMap:
    """Which tests run a line of a module."""

    def __init__(self, folder: Path, root: Path) -> None:
        """Read the notes of all processes.

        Args:
            folder: Where they are.
            root: The repository whose modules the notes are of.
        """
        self._tests: dict[tuple[str, int], set[str]] = defaultdict(set)
        for file in sorted(folder.glob("*.coverage")):
            notes = coverage.CoverageData(str(file))
            notes.read()
            for path in notes.measured_files():
                module = Path(path).relative_to(root).as_posix()
                for line, tests in notes.contexts_by_lineno(path).items():
                    self._tests[module, line].update(filter(None, tests))

    def tests_of(self, module: str, lines: Sequence[int]) -> list[str]:
        """Return the tests that run one of some lines of a module; none where they are run as it is imported."""
        return sorted(set().union(*(self._tests.get((module, line), ()) for line in lines)))
