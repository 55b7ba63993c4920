"""What the files of a sandbox were when it began: what is new is found, and removed again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vfgym.sandboxes.inside import pristine
from vfgym.sandboxes.inside.pristine import Pristine


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "folder" / "inner").mkdir(parents=True)
    (top / "file").write_text("as it was")
    (top / "folder" / "link").symlink_to("inner")
    return top


def names(entries: list[list[object]], top: Path) -> list[str]:
    return [str(Path(str(entry[0])).relative_to(top)) for entry in entries]


def test_new_files_folders_and_links_are_found_folders_first(top: Path) -> None:
    known = Pristine([str(top)])
    assert known.find_new() == []
    (top / "new" / "deep").mkdir(parents=True)
    (top / "new" / "deep" / "file").write_text("x")
    (top / "folder" / "inner" / "added").symlink_to("nowhere")
    found = names(known.find_new(), top)
    assert set(found) == {"new", "new/deep", "new/deep/file", "folder/inner/added"}
    assert found.index("new") < found.index("new/deep") < found.index("new/deep/file")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file's mode": lambda top: os.chmod(top / "file", 0o600),
    "a folder's mode": lambda top: os.chmod(top / "folder", 0o700),
    "a file is gone": lambda top: (top / "file").unlink(),
    "a folder is gone": lambda top: shutil.rmtree(top / "folder"),
    "a link leads elsewhere": lambda top: ((top / "folder" / "link").unlink(), (top / "folder" / "link").symlink_to("other")),
    "a folder is a file": lambda top: (shutil.rmtree(top / "folder" / "inner"), (top / "folder" / "inner").touch()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_there_and_was_changed_can_not_be_copied(top: Path, change: Callable[[Path], object]) -> None:
    known = Pristine([str(top)])
    change(top)
    with pytest.raises(OSError, match="It was there from the beginning, and was changed"):
        known.find_new()


def test_what_can_not_be_copied_is_named(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Pristine([str(top)])
    os.mkfifo(top / "pipe")
    with pytest.raises(OSError, match=r"neither a file nor a folder nor a link: .*pipe"):
        known.find_new()
    (top / "pipe").unlink()
    monkeypatch.setattr(pristine, "MOST_ENTRIES", 1)
    (top / "a").touch()
    assert len(known.find_new()) == 1
    (top / "b").touch()
    with pytest.raises(OSError, match="more than 1 files and folders"):
        known.find_new()


def test_what_is_new_is_removed_and_folders_are_made_good(top: Path) -> None:
    known = Pristine([str(top)])
    (top / "new" / "deep").mkdir(parents=True)
    (top / "new" / "deep" / "file").touch()
    os.chmod(top / "new", 0)
    (top / "folder" / "inner" / "added").touch()
    (top / "dangling").symlink_to("nowhere")
    os.chmod(top / "folder", 0o700)
    assert known.restore() is None
    assert sorted(str(each.relative_to(top)) for each in top.rglob("*")) == ["file", "folder", "folder/inner", "folder/link"]
    assert (top / "folder").stat().st_mode & 0o777 == 0o755
    (top / "folder" / "inner").rmdir()
    assert known.restore() is None
    assert (top / "folder" / "inner").is_dir()


NOT_MADE_GOOD: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a file's mode": ("file", CHANGES["a file's mode"]),
    "a file is gone": ("file", CHANGES["a file is gone"]),
    "a file is a folder": ("file", lambda top: ((top / "file").unlink(), (top / "file").mkdir())),
    "a link leads elsewhere": ("folder/link", CHANGES["a link leads elsewhere"]),
    "a link is gone": ("folder/link", lambda top: (top / "folder" / "link").unlink()),
    "a folder is a file": ("folder/inner", CHANGES["a folder is a file"]),
    "a folder with others is a file": ("folder", lambda top: (shutil.rmtree(top / "folder"), (top / "folder").touch())),
}


@pytest.mark.parametrize(("path", "change"), NOT_MADE_GOOD.values(), ids=NOT_MADE_GOOD)
def test_what_can_not_be_made_good_is_said_and_what_is_new_removed(top: Path, path: str, change: Callable[[Path], object]) -> None:
    known = Pristine([str(top)])
    change(top)
    was_there = os.path.lexists(top / path)
    (top / "new").touch()
    assert known.restore() == f"{top}/{path} was changed"
    assert os.path.lexists(top / path) is was_there, "nothing stands in its place"
    assert not (top / "new").exists()


def test_several_folders_are_looked_at(top: Path, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    known = Pristine([str(top), str(tmp_path / "second")])
    (tmp_path / "second" / "new").touch()
    (tmp_path / "elsewhere").touch()
    assert [entry[0] for entry in known.find_new()] == [f"{tmp_path}/second/new"]
    assert known.restore() is None
    assert (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "second" / "new").exists()
