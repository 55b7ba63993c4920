"""Modules of environments, importable until a test ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Write a module."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield lambda name, code: (tmp_path / f"{name}.py").write_text(code) and None
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
