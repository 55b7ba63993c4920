"""What has to be installed for what a package imports."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from verifiers_compat.cli.packages.check import Report
from verifiers_compat.cli.packages.needs import is_installed


def test_what_verifiers_brings_is_added_and_the_rest_is_named(check: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verifiers_compat.cli.packages.needs.is_installed", lambda module: module in ("numpy", "helpers"))
    report = check(
        "import os, json, numpy.linalg, helpers\nimport agents, yaml, left_pad\nimport sibling\nimport verifiers\n"
        "def f():\n    from tenacity import retry\n",
        ["verifiers", "PyYAML", "no-such-distribution"],
        **{"sibling.py": "import json\n"},
    )
    found = {each.module: (each.status, each.requirement) for each in report.imports}
    assert found == {
        "agents": ("added", "openai-agents>=0.0.7"),
        "helpers": ("installed", None),
        "left_pad": ("unsure", None),  # what no-such-distribution brings, nobody knows here
        "numpy": ("installed", "numpy"),
        "tenacity": ("added", "tenacity>=8.5"),
        "yaml": ("required", "pyyaml"),
    }
    assert report.is_complete
    for requires in (["verifiers"], ["rich"]):  # which is installed, and does not bring it
        report = check("import left_pad", requires)
        assert [each.status for each in report.imports] == ["missing"]
    assert [each.status for each in report.imports] == ["missing"]
    assert not report.is_complete


def test_a_directory_is_not_a_library(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where it is on the path, as the current directory may be."""
    Path("agents").mkdir()
    monkeypatch.syspath_prepend(str(workspace))
    assert not is_installed("agents")
    assert not is_installed("no_such_module")
    assert is_installed("numpy")
    monkeypatch.setitem(sys.modules, "made_by_hand", types.ModuleType("made_by_hand"))
    assert is_installed("made_by_hand")


def test_places_are_named_once_and_what_can_be_done_without_is_no_need(check: Callable[..., Report]) -> None:
    optional = "try:\n    import right_pad\nexcept ImportError: ...\n"
    code = f"import left_pad, left_pad.deep\nimport vfgym, verifiers_compat, word_count, os.path\n{optional}from left_pad import x\n"
    report = check(code, ["left-pad"])
    assert [(each.module, each.status, each.places) for each in report.imports] == [
        ("left_pad", "required", ["word_count.py:1", "word_count.py:6"])
    ]
