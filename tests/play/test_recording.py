"""Recordings of games."""

from __future__ import annotations

from pathlib import Path

import pytest

import vfgym
from tests.play.playing import RULES, make
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
        assert (film.format, film.n_frames) == ("GIF", 4)


@pytest.mark.parametrize(("name", "message"), [("game.png", "must end in .gif"), ("nowhere/game.gif", "is not a directory that can be")])
def test_a_recording_that_cannot_be_written_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(vfgym.errors.ConfigurationError, match=message):
        Recording(tmp_path / name)
