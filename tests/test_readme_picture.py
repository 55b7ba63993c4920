"""The README's picture shows what was said in real episodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vfgym
from scripts import readme_picture
from vfgym.wrappers.games.images import frame_of

pytest.importorskip("pygame", reason="needs the extra classic")
pytest.importorskip("PIL", reason="needs the extra images")


def test_the_panels_are_what_the_environment_says() -> None:
    """The same game, played here with `gymnasium.make`, tells the same."""
    text, tool, image = readme_picture.panels()
    env = vfgym.to_chat("FrozenLake-v1", is_slippery=False)
    first, _ = env.reset(seed=0)
    for move in readme_picture.WAY:
        last, reward, terminated, _, _ = env.step(move)
    assert terminated
    assert [panel.reward for panel in (text, tool, image)] == [reward] * 3 == [1.0] * 3
    for paragraph in text.beginning.parts:
        assert paragraph == readme_picture.LEFT_OUT or paragraph in first[-1].content
    assert "\n\n".join(text.end[1].parts) == "\n\n".join(tool.end[1].parts) == last[-1].content
    assert ([bubble.role for bubble in tool.end], tool.end[0].parts) == (["assistant", "tool"], ('act({"action": "right"})',))


def test_the_images_are_those_that_were_sent() -> None:
    image = readme_picture.panels()[2]
    env = vfgym.to_chat("FrozenLake-v1", is_slippery=False, observe="image")
    first, _ = env.reset(seed=0)
    for move in readme_picture.WAY:
        last, *_ = env.step(move)
    for bubble, message in ((image.beginning, first[-1]), (image.end[1], last[-1])):
        (sent,) = (frame_of(part) for part in message.content if part["type"] == "image_url")
        (drawn,) = (part for part in bubble.parts if not isinstance(part, str))
        assert np.array_equal(drawn, sent)


def test_the_picture_is_drawn_from_the_panels_and_always_the_same(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    drawn = readme_picture.panels()
    files = [tmp_path / "one.png", tmp_path / "other.png"]
    for file in files:
        readme_picture.draw(drawn, file)
    one, other = (file.read_bytes() for file in files)
    assert one == other
    assert len(one) < 250_000
    assert one.startswith(b"\x89PNG")
