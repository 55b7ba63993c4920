"""The files that commands write, filled in from templates."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from verifiers_compat.cli.templates import fill_template, write_new


def test_templates_are_filled_in() -> None:
    text = fill_template("pyproject.toml", "word_count", included="word_count.py")
    assert 'name = "word-count"' in text
    assert 'include = ["word_count.py", "pyproject.toml"]' in text
    assert f'"vfgym>={importlib.metadata.version("vfgym").partition("+")[0]}"' in text
    assert "$included" in fill_template("pyproject.toml", "word_count")


def test_a_file_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new" / "file"
    write_new(file, "ä\n")
    write_new(file, "other")
    assert (file.read_bytes(), capsys.readouterr().out) == ("ä\n".encode(), f"written {file}\nkept    {file}\n")
    write_new(file, "", replaces=True)
    assert (file.read_text(), capsys.readouterr().out) == ("", f"written {file}\n")
