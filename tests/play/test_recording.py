"""Recordings of games."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.play.playing import RULES, make
from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.play import Game, Recording


def test_a_recording_has_a_frame_for_each_position(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs the extra images")
    recording = Recording(tmp_path / "game.gif")
    game = Game(make(render_mode="rgb_array", **RULES), 1, recording=recording)
    for line in ("down", "nonsense", "down", "left"):
        game.answer(line)
    game.undo()
    game.answer("right")
    recording.save()
    with image.open(tmp_path / "game.gif") as film:
        assert (film.format, film.n_frames, len(recording), film.info["loop"]) == ("GIF", 4, 4, 0)


@pytest.mark.parametrize("count", [1, 3])
def test_the_last_frame_stands_longest(count: int, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs the extra images")
    recording, frame = Recording(tmp_path / "game.GIF"), np.zeros((2, 2, 3), np.uint8)
    for number in range(count):
        frame[:] = 100 * number  # as a game does that draws into the same array
        recording.add(frame)
    recording.save()
    shown = []
    with image.open(tmp_path / "game.GIF") as film:
        for number in range(film.n_frames):
            film.seek(number)
            shown.append((film.convert("RGB").getpixel((0, 0))[0], film.info["duration"]))
    assert shown == [(100 * number, 600) for number in range(count - 1)] + [(100 * (count - 1), 3000)]


def test_a_file_that_cannot_be_written_after_all_is_said(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="needs the extra images")
    (tmp_path / "folder").mkdir()
    recording = Recording(tmp_path / "folder" / "game.gif")
    recording.add(np.zeros((2, 2, 3), np.uint8))
    (tmp_path / "folder").rmdir()
    with pytest.raises(ConfigurationError, match=r"^--record cannot write .*game\.gif: No such file or directory$"):
        recording.save()


def test_without_pillow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtra, match=r"--record.*vfgym\[images\]"):
        Recording(tmp_path / "game.gif")


@pytest.mark.parametrize(
    ("name", "message"),
    [("game.png", "must end in .gif"), ("nowhere/game.gif", "is not a directory that can be"), ("folder.gif", "cannot write")],
)
def test_a_recording_that_cannot_be_written_is_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(ConfigurationError, match=message):
        Recording(tmp_path / name)
