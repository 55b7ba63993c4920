"""`Recording`: the frames of a game, written as a GIF."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.output.pictures import Picture, as_picture

_MILLISECONDS, _LAST_MILLISECONDS = 600, 3000
"""How long a frame stands, and how long the last one."""


class Recording:
    """The frames of a game, one for each position. A move that is taken back takes its frame with it."""

    def __init__(self, file: Path) -> None:
        """Record into a file.

        Raises:
            ConfigurationError: If it is not a GIF, or cannot be written.
            MissingExtra: If Pillow is not installed.
        """
        if file.suffix.lower() != ".gif":
            raise ConfigurationError(f"--record writes a GIF, so the file must end in .gif; got {file}")
        if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
            raise ConfigurationError(f"--record cannot write {file}: {file.parent} is not a directory that can be written")
        try:
            import PIL.Image  # noqa: F401 -- told before the game begins
        except ImportError as error:
            raise MissingExtra("images", "--record") from error
        self.file = file
        self._frames: list[Picture] = []

    def __len__(self) -> int:
        """Return how many frames there are."""
        return len(self._frames)

    def add(self, frame: Any) -> None:
        """Add a frame: an image of uint8, as ``render_mode="rgb_array"`` gives it."""
        self._frames.append(np.array(as_picture(frame)))  # a game may draw the next one into the same array

    def cut(self, count: int) -> None:
        """Leave the first so many frames."""
        del self._frames[count:]

    def save(self) -> None:
        """Write the file.

        Raises:
            ConfigurationError: If it cannot be written after all.
        """
        from PIL import Image

        first, *others = [Image.fromarray(frame).convert("P", palette=Image.Palette.ADAPTIVE) for frame in self._frames]
        durations = [_MILLISECONDS] * len(others) + [_LAST_MILLISECONDS]
        try:
            first.save(self.file, save_all=True, append_images=others, duration=durations, loop=0)
        except OSError as error:
            raise ConfigurationError(f"--record cannot write {self.file}: {error.strerror or error}") from error
