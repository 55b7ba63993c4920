"""What is made once on the host: by the first who needs it, whole or not at all."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from vfgym.sandboxes import host_cache
from vfgym.sandboxes.host_cache import cache_folder, make_once


def test_the_cache_lies_where_the_system_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("venvs") == tmp_path / "vfgym" / "venvs"
    for unset in (lambda: monkeypatch.setenv("XDG_CACHE_HOME", ""), lambda: monkeypatch.delenv("XDG_CACHE_HOME")):
        unset()
        assert cache_folder("checkouts") == Path.home() / ".cache" / "vfgym" / "checkouts"


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    folder, made = tmp_path / "deep" / "made", []

    def make() -> None:
        made.append(1)
        folder.mkdir()
        (folder / "file").touch()

    for _ in range(2):
        assert make_once(folder, make, "a test's folder") == folder
    assert made == [1]
    assert (folder / "file").exists()
    assert (folder / "vfgym-complete").read_text() == "a test's folder"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_where_it_fails_nothing_is_left_and_the_next_one_tries_again(tmp_path: Path, error: type[BaseException]) -> None:
    folder = tmp_path / "made"

    def fail() -> None:
        (folder / "half").mkdir(parents=True)
        raise error

    with pytest.raises(error):
        make_once(folder, fail, "half")
    assert not folder.exists()
    make_once(folder, folder.mkdir, "whole")
    assert folder.exists()


def test_what_a_killed_process_has_left_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    (folder / "half").mkdir(parents=True)
    make_once(folder, folder.mkdir, "whole")
    assert [each.name for each in folder.iterdir()] == ["vfgym-complete"]


def test_who_comes_meanwhile_waits_says_so_and_finds_it_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, waits = tmp_path / "made", threading.Event()
    monkeypatch.setattr(host_cache, "echo", lambda text, **options: (said.append(text), waits.set()))
    said: list[str] = []
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: make_once(folder, lambda: said.append("made again"), "a test's folder"))
        waiting.start()
        assert waits.wait(60)
        folder.mkdir()
        (folder / "vfgym-complete").touch()
    waiting.join()
    assert said == ["sandboxes: waiting for another process, which makes a test's folder"]
