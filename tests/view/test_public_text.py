"""What leaves this machine: without keys, and without the folders of this machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import vfgym
from vfgym.view.public_text import public_text, shorten_paths


@pytest.mark.parametrize(
    ("value", "shortened"),
    [
        ("at /home/ann/data/tasks.jsonl, line 3", "at …/tasks.jsonl, line 3"),
        ("C:\\Users\\ann\\notes.txt and C:/x/y", "…/notes.txt and …/y"),
        ({"a": ["/srv/x", ("/srv/y",)], "/srv/key": 1}, {"a": ["…/x", ["…/y"]], "/srv/key": 1}),
        *((text, text) for text in ("http://localhost:8000/v1", "a/b", "~/notes.txt", "/", "</b>", "1 / 2", None, 3)),
    ],
)
def test_absolute_paths_are_cut_to_their_last_names(value: Any, shortened: Any) -> None:
    assert shorten_paths(value) == shortened


@pytest.mark.parametrize("before", ["", "\n", "\t", "\x1b[01;34m", "→", "'", "a:", "--in=", "é\n"])
def test_a_folder_is_hidden_whatever_stands_before_it(monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    text = f"{before}/home/ann/notes.txt, /home/ann, /mnt/home/ann and /home/anna"
    hidden = f"{before}~/notes.txt, ~, /mnt/home/ann and /home/anna"
    assert (public_text(text), json.loads(public_text(json.dumps(text)))) == (hidden, hidden)


def test_keys_are_hidden_and_folders_have_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-of-the-environment")
    monkeypatch.chdir(tmp_path)
    run, package = tmp_path / "a run", Path(vfgym.__file__).parents[1]
    text = f"sk-of-the-environment {run}/results.jsonl {os.getcwd()}/setup.py {sys.prefix}/bin {package}/docs"
    assert public_text(text, [run]) == "*** a run/results.jsonl ./setup.py <python>/bin <vfgym>/docs"
