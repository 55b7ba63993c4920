"""Frames of a game as content parts of a chat message, and back. PNG, so nothing is lost."""

from __future__ import annotations

import base64
import binascii
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from vfgym.errors import ConfigurationError, InvalidMessage, MissingExtra

if TYPE_CHECKING:
    from types import ModuleType

Frame: TypeAlias = npt.NDArray[np.uint8]
"""An image as numbers of type uint8: ``(height, width)`` or ``(height, width, 1)`` in grey, ``(height, width, 3)`` in colours (RGB), or
``(height, width, 4)`` with opacity too (RGBA)."""

Detail: TypeAlias = Literal["auto", "low", "high"]
"""How closely a provider looks at an image."""

_URL = "data:image/png;base64,"

_SHORTEST_SIDE = 16
"""The smallest image that is taken for one; smaller arrays are boards and views in symbols (MiniGrid's is 7 by 7 by 3)."""


_MOST_FRAMES = 8
"""The most frames that are shown side by side; longer stacks are volumes and not films."""

_READABLE = 512
"""Fractions in two dimensions are an image where they are more than a model can read as numbers."""

_GAP = 4
"""Pixels between frames that are shown side by side."""


@dataclass(frozen=True)
class FrameReader:
    """Makes a frame of an observation that is an image."""

    is_fraction: bool = False
    """Whether the observation's numbers are fractions of the full brightness."""
    frames: int = 0
    """How many frames an observation stacks, which are shown side by side, the oldest at the left; 0 where it is no stack."""

    def __call__(self, observation: Any) -> Frame:
        """Return the frame."""
        frame = np.asarray(observation)
        if self.is_fraction:
            frame = np.rint(np.nan_to_num(frame).clip(0.0, 1.0) * 255).astype(np.uint8)
        if not self.frames:
            return frame
        gap = np.full((frame.shape[1], _GAP, *frame.shape[3:]), 255, np.uint8)
        return np.concatenate([part for each in frame for part in (gap, each)][1:], axis=1)


def frame_reader(space: gym.Space[Any]) -> FrameReader | None:
    """Return what makes frames of the elements of a space; None if they are not images.

    Images are arrays of the shapes of a `Frame`, at least 16 by 16, of type uint8 or of fractions from 0 to 1; or up to 8 of these, stacked
    along the first axis. Fractions without an axis of colours are numbers where a model could read them: up to 512.
    """
    if not isinstance(space, gym.spaces.Box):
        return None
    is_stack = len(space.shape) in (3, 4) and _is_image_shape(space.shape[1:]) and 1 <= space.shape[0] <= _MOST_FRAMES
    if not is_stack and not _is_image_shape(space.shape):
        return None
    frames = space.shape[0] if is_stack else 0
    if space.dtype == np.uint8:
        return FrameReader(frames=frames)
    has_colours = space.shape[-1] in (1, 3, 4)
    is_fraction = np.issubdtype(space.dtype, np.floating) and bool((space.low == 0).all() and (space.high == 1).all())
    if not is_fraction or not (has_colours or math.prod(space.shape) > _READABLE):
        return None
    return FrameReader(is_fraction=True, frames=frames)


def is_image_space(space: gym.Space[Any]) -> bool:
    """Say whether the elements of a space are images (see `frame_reader`).

    >>> is_image_space(gym.spaces.Box(0, 255, (210, 160, 3), np.uint8)), is_image_space(gym.spaces.Box(0, 255, (128,), np.uint8))
    (True, False)
    """
    return frame_reader(space) is not None


def _is_image_shape(shape: tuple[int, ...]) -> bool:
    return _is_frame_shape(shape) and min(shape[:2]) >= _SHORTEST_SIDE


def _is_frame_shape(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4))


def image_part(frame: Frame, *, detail: Detail | None = None, scale: int = 1) -> dict[str, Any]:
    """Return a frame as a content part of type ``image_url``.

    Args:
        frame: The image.
        detail: How closely a provider looks at it; left to the provider without it.
        scale: How many times larger the image is made. Pixels become squares, which helps models to see small ones.

    Returns:
        A part ``{"type": "image_url", "image_url": {"url": "data:image/png;base64,..."}}``.

    Raises:
        ConfigurationError: If the frame is not an image, or an argument is out of range.
        MissingExtra: If Pillow is not installed.
    """
    if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or not _is_frame_shape(frame.shape) or not frame.size:
        came = f"{frame.dtype} of shape {frame.shape}" if isinstance(frame, np.ndarray) else type(frame).__name__
        raise ConfigurationError(f"expected a frame, an array of uint8 of shape (height, width) or (height, width, 1, 3 or 4), got {came}")
    if detail is not None and detail not in get_args(Detail):
        raise ConfigurationError(f"detail must be one of {', '.join(get_args(Detail))}, or None; got {detail!r}")
    if not isinstance(scale, int) or scale < 1:
        raise ConfigurationError(f"scale must be a whole number of at least 1, got {scale!r}")
    if frame.ndim == 3 and frame.shape[2] == 1:
        frame = frame[:, :, 0]
    if scale > 1:
        frame = frame.repeat(scale, axis=0).repeat(scale, axis=1)
    png = io.BytesIO()
    # Level 1 takes 0.7 ms for an Atari frame and the default 1.6 ms, for 1.3 kB instead of 0.7 kB. Providers count pixels, not bytes.
    _pillow().fromarray(frame).save(png, format="PNG", compress_level=1)
    image_url = {"url": _URL + base64.b64encode(png.getvalue()).decode("ascii")}
    if detail is not None:
        image_url["detail"] = detail
    return {"type": "image_url", "image_url": image_url}


def frame_of(part: Mapping[str, Any]) -> Frame:
    """Return the frame of a part that `image_part` made, bit for bit (with ``scale=1``).

    A frame of shape ``(height, width, 1)`` comes back as ``(height, width)``.

    Args:
        part: A content part of type ``image_url``.

    Raises:
        InvalidMessage: If the part holds no PNG image.
        MissingExtra: If Pillow is not installed.
    """
    image_url = part.get("image_url")
    url = image_url.get("url") if isinstance(image_url, Mapping) else None
    if not isinstance(url, str) or not url.startswith(_URL):
        raise InvalidMessage(f"expected a content part with an image_url that begins with {_URL!r}, got {part!r:.100}")
    try:
        with _pillow().open(io.BytesIO(base64.b64decode(url[len(_URL) :], validate=True)), formats=["PNG"]) as image:
            if image.mode not in ("L", "RGB", "RGBA"):
                raise InvalidMessage(f"expected an image of 8 bits in grey, RGB or RGBA, got one of mode {image.mode}")
            return np.array(image)
    except (binascii.Error, OSError, SyntaxError) as error:
        raise InvalidMessage(f"expected a PNG image in base64, got {url!r:.100}") from error


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra("images", "showing a game as images") from error
    return Image
