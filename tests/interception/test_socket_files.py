"""Folders of sockets: made for their owner, and removed where nobody serves them any more."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from vfgym.interception.socket_files import make_socket_path, remove_socket


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where sockets are made. Paths of sockets have at most some hundred characters, and pytest's own folders may have more."""
    with tempfile.TemporaryDirectory(prefix="s-") as made:
        monkeypatch.setattr(tempfile, "tempdir", made)
        yield Path(made)


@pytest.mark.usefixtures("folder")
def test_sockets_that_nobody_serves_are_removed_and_those_of_running_servers_kept() -> None:
    left, served = make_socket_path(), make_socket_path()
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(left)  # its file stays when its process ends
    os.utime(left, (0, 0))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(served)
        server.listen()
        os.utime(served, (0, 0))
        make_socket_path()
        assert (os.path.exists(os.path.dirname(left)), os.path.exists(served)) == (False, True)


def test_a_folder_of_its_own_is_removed_with_its_socket(folder: Path) -> None:
    first, second = make_socket_path(), make_socket_path()
    assert os.path.dirname(first) != os.path.dirname(second)
    assert os.stat(os.path.dirname(first)).st_mode & 0o077 == 0
    for _ in range(2):
        remove_socket(first)
    assert [str(path) for path in folder.iterdir()] == [os.path.dirname(second)]


@pytest.mark.usefixtures("folder")
def test_a_socket_that_was_just_made_is_left_to_its_server() -> None:
    path = make_socket_path()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path)  # and does not listen yet
    make_socket_path()
    assert os.path.exists(path)
    os.utime(path, (0, 0))
    make_socket_path()
    assert not os.path.exists(path)
