"""The agent's file operations: what is read and written, where paths lead, and what is removed."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from vfgym.sandboxes.inside import files
from vfgym.sandboxes.inside.files import Files, remove_below, walk


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture
def below(tmp_path: Path) -> Files:
    """Files below a folder of the host, as an unsafe sandbox has them."""
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("secret")
    return Files(str(tmp_path / "root"), "/home", ["/logs"])


def test_paths_are_relative_to_the_working_directory_or_absolute_below_the_root(below: Files, tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert below.find("a/b") == f"{root}/home/a/b"
    assert below.find("/a/b") == f"{root}/a/b"
    assert below.find("../x") == f"{root}/home/../x", "which is in the root"
    assert below.find("/../../x") == f"{root}/x", "nothing is above /"
    assert (root / "home").is_dir()
    assert (root / "logs").is_dir()
    whole = Files("/", str(tmp_path / "made"))
    assert (whole.find("a"), whole.find("/etc/passwd")) == (f"{tmp_path}/made/a", "/etc/passwd")


def test_what_leads_out_of_the_root_is_not_there(below: Files, tmp_path: Path) -> None:
    (tmp_path / "root" / "home" / "link").symlink_to(tmp_path)
    for path in ("../../secret", "link/secret", "/home/link/secret"):
        for operation in (lambda path: below.read(path, 0, 9), lambda path: below.write(path, "", False, None), below.clear):
            with pytest.raises(FileNotFoundError):
                operation(path)
    beside = tmp_path / "root-beside"
    beside.mkdir()
    with pytest.raises(FileNotFoundError):
        below.find("../../root-beside")
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_file_is_written_added_to_and_read_in_parts(below: Files, tmp_path: Path) -> None:
    below.write("a/b.txt", encoded(b"hello"), False, 0o640)
    below.write("a/b.txt", encoded(b" you"), True, None)
    assert below.read("a/b.txt", 0, 100) == {"data": encoded(b"hello you"), "size": 9, "mode": 0o640}
    assert below.read("a/b.txt", 6, 2) == {"data": encoded(b"yo"), "size": 9, "mode": 0o640}
    assert below.read("a/b.txt", 9, 5)["data"] == ""
    below.write("a/b.txt", encoded(b""), False, 0)
    assert (tmp_path / "root/home/a/b.txt").stat().st_size == 0
    assert (tmp_path / "root/home/a/b.txt").stat().st_mode & 0o777 == 0, "a mode of 0 is one"


def test_what_is_not_a_regular_file_is_neither_read_nor_written(below: Files, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "root/home/pipe")
    with pytest.raises(IsADirectoryError):
        below.read("/logs", 0, 9)
    with pytest.raises(OSError, match="Not a regular file"):
        below.read("pipe", 0, 9)
    with pytest.raises(IsADirectoryError):
        below.write("/logs", "", False, None)
    with pytest.raises(OSError, match="No such device or address"):
        below.write("pipe", "", False, None)


def test_folders_and_links_are_made(below: Files, tmp_path: Path) -> None:
    for _ in range(2):
        below.make_folder("x/y", 0o700)
    assert (tmp_path / "root/home/x/y").stat().st_mode & 0o777 == 0o700
    below.make_folder("x/z", None)
    below.make_link("x/link", "../nowhere")
    assert os.readlink(tmp_path / "root/home/x/link") == "../nowhere"


def test_a_folder_is_emptied_and_anything_else_removed(below: Files, tmp_path: Path) -> None:
    home = tmp_path / "root/home"
    below.write("full/a/b", "", False, None)
    below.write("file", "", False, None)
    (home / "dangling").symlink_to("nowhere")
    for path in ("full", "file", "dangling", "not-there"):
        below.clear(path)
    assert [each.name for each in home.iterdir()] == ["full"]
    assert list((home / "full").iterdir()) == []


def test_a_walk_goes_into_folders_and_names_more_than_it_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "file").touch()
    assert [each[0] for each in walk(str(tmp_path), "/x")["entries"]] == ["deep", "deep/er", "deep/er/file"]
    remove_below(str(tmp_path))
    monkeypatch.setattr(files, "MOST_ENTRIES", 2)
    for name in ("a", "b"):
        (tmp_path / name).touch()
    assert [each[0] for each in walk(str(tmp_path), "/x")["entries"]] == ["a", "b"]
    (tmp_path / "c").touch()
    with pytest.raises(OSError, match="more than 2 files and folders: '/x'"):
        walk(str(tmp_path), "/x")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a regular file"):
        walk(str(tmp_path / "pipe"), "/pipe")


def test_what_nobody_may_read_and_what_is_too_deep_for_a_path_is_removed(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("of the host")
    folder = tmp_path / "folder"
    (folder / "shut" / "in").mkdir(parents=True)
    (folder / "shut" / "in" / "file").touch()
    (folder / "link").symlink_to(tmp_path)
    os.chmod(folder / "shut" / "in", 0)
    os.chmod(folder / "shut", 0)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(30):  # 30 * 200 letters: longer than a path may be
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    remove_below(str(folder))
    assert list(folder.iterdir()) == []
    assert (tmp_path / "kept").read_text() == "of the host"
    remove_below(str(tmp_path / "not-there"))
