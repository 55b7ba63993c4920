"""The check of names finds a retired word wherever it stands in a name, and a class name that stands twice in one package."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_names

GLOSSARY = """
| term | what |
|---|---|
| **told** | a word of the other table is not retired |

## Retired words

| not | but |
|---|---|
| left_out | dropped |
| teller, told | report |
"""


def problems(root: Path, monkeypatch: pytest.MonkeyPatch, **modules: str) -> list[str]:
    """Return what the check says of packages with these modules, of which ``v1__x`` lies in `verifiers_compat/v1`."""
    (root / "docs").mkdir()
    (root / "docs" / "glossary.md").write_text(GLOSSARY)
    for name, code in modules.items():
        folder, _, module = name.rpartition("__")
        path = root / ("verifiers_compat/v1" if folder == "v1" else folder or "vfgym") / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    monkeypatch.setattr(check_names, "ROOT", root)
    return list(check_names.find_problems())


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("class StoryTeller: ...", "class StoryTeller"),
        ("def _was_told(): ...", "function _was_told"),
        ("async def f(*, left_out=()): ...", "argument left_out"),
        ("OPTION = '--left-out'", "option --left-out"),
    ],
)
def test_a_retired_word_is_found_in_every_kind_of_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, name: str) -> None:
    (problem,) = problems(tmp_path, monkeypatch, module=code)
    assert problem.startswith(f"vfgym/module.py:1: {name}: ")
    assert problem.endswith("(docs/glossary.md)")


def test_modules_have_names_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,) = problems(tmp_path, monkeypatch, left_out="")
    assert problem == "vfgym/left_out.py:1: module left_out: left_out is retired, use dropped (docs/glossary.md)"


def test_words_that_only_hold_a_retired_one_are_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert problems(tmp_path, monkeypatch, module="def untold(): 'told'\nstoryteller = left_out = 1") == []


def test_a_class_name_stands_once_in_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = "class State: ...\nclass _State: ..."
    found = problems(tmp_path, monkeypatch, one=same, two=same, verifiers_compat__one=same, v1__one=same)
    assert found == ["vfgym/one.py:1, vfgym/two.py:1: 2 classes of vfgym are called State: give each a name of its own"]
