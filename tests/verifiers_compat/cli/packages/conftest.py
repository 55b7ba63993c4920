"""Packages below ``environments``, and the reports on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.verifiers_compat.cli.packages.reports import LOADER, PROJECT
from verifiers_compat.cli.packages.check import Report, check_target
from verifiers_compat.cli.packages.targets import open_target


@pytest.fixture
def write(workspace: Path) -> Callable[..., Path]:
    """Write a package below ``environments``: its files by their paths, and what it requires."""

    def write(name: str, files: dict[str, str], requires: Sequence[str] = ("verifiers>=0.1.9",)) -> Path:
        folder = workspace / "environments" / name.replace("-", "_")
        texts = {"pyproject.toml": PROJECT.format(name=name, dependencies=", ".join(map(json.dumps, requires))), **files}
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    return write


@pytest.fixture
def check(write: Callable[..., Path]) -> Callable[..., Report]:
    """The report on a package of one module."""

    def check(code: str, requires: Sequence[str] = ("verifiers",), **files: str) -> Report:
        write("word-count", {"word_count.py": code + LOADER, **files}, requires)
        with open_target("word-count", Path("environments")) as target:
            return check_target(target)

    return check
