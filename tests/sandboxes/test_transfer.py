"""Trees of files on the host's side of a copy: nothing outside of the folder is read or written, whatever links say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vfgym.errors import SandboxError
from vfgym.sandboxes import transfer
from vfgym.sandboxes.spec import Entry


def entry(path: str, kind: str = "file", mode: int = 0o644, size: int = 0, **more: object) -> Entry:
    return Entry(path, kind, mode, size, **more)  # type: ignore[arg-type]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with files and links, beside a secret."""
    base = tmp_path / "base"
    (base / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (base / "a.txt").write_text("a")
    (base / "sub" / "b.txt").write_text("bb")
    (base / "inside").symlink_to("sub/b.txt")
    (base / "outside").symlink_to(tmp_path / "secret")
    (base / "broken").symlink_to("nowhere")
    os.mkfifo(base / "pipe")
    return base


def test_a_tree_has_files_folders_and_links_and_says_where_links_lead(tree: Path) -> None:
    found = {each.path: (each.kind, each.size, each.file) for each in transfer.walk(tree)}
    assert found == {
        "a.txt": ("file", 1, None),
        "sub": ("folder", 0, None),
        "sub/b.txt": ("file", 2, None),
        "inside": ("link", 0, "sub/b.txt"),
        "outside": ("link", 0, None),
        "broken": ("link", 0, None),
    }
    [only] = transfer.walk(tree / "a.txt")
    assert (only.path, only.kind, only.size) == ("", "file", 1)


def test_links_become_files_or_are_dropped(tree: Path) -> None:
    kept, dropped = transfer.resolve_links(transfer.walk(tree))
    assert sorted(dropped) == ["broken", "outside"]
    [link] = [each for each in kept if each.path == "inside"]
    assert (link.kind, link.file, link.mode) == ("file", "sub/b.txt", 0o644)
    assert transfer.read(tree, link) == b"bb"
    assert {each.path for each in kept} == {"a.txt", "sub", "sub/b.txt", "inside"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a\0b", 7])
@pytest.mark.parametrize("field", ["path", "file"])
def test_a_path_that_leads_out_is_refused_before_anything_is_done(path: object, field: str) -> None:
    fine = entry("a", file="b")
    assert transfer.check(fine) is fine
    assert transfer.check(entry("a..b/..c"))
    bad = entry(path) if field == "path" else entry("a", file=path)  # type: ignore[arg-type]
    with pytest.raises(SandboxError, match="outside of the folder that is copied"):
        transfer.check(bad)


def test_each_entry_lies_in_a_folder_that_was_named_before() -> None:
    fine = [entry("a"), entry("d", "folder"), entry("d/e", "folder"), entry("d/e/f")]
    assert transfer.check_tree(fine) == fine
    assert transfer.check_tree([entry("")]) == [entry("")]
    for wrong in ([entry("d/e")], [entry("d", "link"), entry("d/e")], [entry("d/e/f"), entry("d", "folder")]):
        with pytest.raises(SandboxError, match="lies in no folder"):
            transfer.check_tree(wrong)


def test_what_is_read_is_a_regular_file_and_no_link(tree: Path) -> None:
    assert transfer.read(tree, entry("sub/b.txt")) == b"bb"
    assert transfer.read(tree / "inside", entry("")) == b"bb", "the file that is named itself may be a link"
    with pytest.raises(OSError, match="symbolic links"):
        transfer.read(tree, entry("outside"))
    with pytest.raises(SandboxError, match="pipe is not a regular file any more"):
        transfer.read(tree, entry("pipe"))


def test_files_are_written_with_modes_that_their_owner_can_use(tree: Path) -> None:
    for mode, kept in ((0o000, 0o600), (0o777, 0o755), (0o640, 0o640), (0o4755, 0o755)):
        transfer.write(tree, entry(f"new/{mode:o}", mode=mode), b"x")
        assert (tree / "new" / f"{mode:o}").stat().st_mode & 0o7777 == kept
    transfer.write(tree, entry("a.txt"), b"")
    assert (tree / "a.txt").read_bytes() == b"", "what was there is replaced"
    transfer.write(tree / "alone", entry(""), b"alone")
    assert (tree / "alone").read_bytes() == b"alone"


def test_nothing_is_written_through_a_link(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tree / "away").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        transfer.write(tree, entry("outside"), b"overwritten")
    with pytest.raises(OSError, match="A link leads out of the folder"):
        transfer.write(tree, entry("away/file"), b"x")
    with pytest.raises(OSError, match="A link leads out of the folder"):
        transfer.make_folder(tree, entry("away/folder", "folder"))
    assert (tmp_path / "secret").read_text() == "secret"
    assert list((tmp_path / "other").iterdir()) == []
    transfer.make_folder(tree, entry("x/y", "folder"))
    transfer.make_folder(tree, entry("x/y", "folder"))
    assert (tree / "x" / "y").is_dir()
