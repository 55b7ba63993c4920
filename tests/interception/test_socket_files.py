"""Folders of sockets: made for their owner, and removed where nobody serves them any more."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from vfgym.interception.socket_files import make_socket_path, remove_socket


def test_sockets_that_nobody_serves_are_removed_and_those_of_running_servers_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
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


def test_a_folder_of_its_own_is_removed_with_its_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first, second = make_socket_path(), make_socket_path()
    assert os.path.dirname(first) != os.path.dirname(second)
    assert os.stat(os.path.dirname(first)).st_mode & 0o077 == 0
    for _ in range(2):
        remove_socket(first)
    assert [str(path) for path in tmp_path.iterdir()] == [os.path.dirname(second)]


def test_a_socket_that_was_just_made_is_left_to_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = make_socket_path()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path)  # and does not listen yet
    make_socket_path()
    assert os.path.exists(path)
    os.utime(path, (0, 0))
    make_socket_path()
    assert not os.path.exists(path)
