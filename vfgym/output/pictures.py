"""Pictures of conversations: text drawn as pixels, for films (`gymnasium.wrappers.RecordVideo`) and windows.

Pillow is imported when the first page is drawn.
"""

from __future__ import annotations

import functools
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from vfgym.errors import ConfigurationError, MissingExtra

Picture: TypeAlias = npt.NDArray[np.uint8]
"""Pixels in colours: an array of uint8 of shape ``(height, width, 3)``."""

COLUMNS, LINES = 80, 28
"""Characters that a line of a page has room for, and lines that a page has."""

_CELL_WIDTH, _CELL_HEIGHT, _MARGIN, _SCALE = 6, 12, 8, 2
"""Pixels of a character of Pillow's bitmap font, those around the text, and how many times larger a page is made than the font."""

PAGE_SHAPE = ((LINES * _CELL_HEIGHT + 2 * _MARGIN) * _SCALE, (COLUMNS * _CELL_WIDTH + 2 * _MARGIN) * _SCALE, 3)
"""The shape of every page. Height and width are multiples of 16, which coders of films ask for."""

_BACKGROUND = (24, 24, 28)
_COLOURS = {"user": (225, 225, 225), "assistant": (130, 220, 140), "tool": (130, 190, 250)}
_OTHER_COLOUR = (165, 165, 175)

_SIMILAR = str.maketrans(
    {
        **dict.fromkeys("─━┄┅┈┉═╌╍‐‑‒–—―−", "-"),  # noqa: RUF001 -- they are meant
        **dict.fromkeys("│┃┆┇┊┋║╎╏", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋╔╗╚╝╠╣╦╩╬╒╕╘╛╞╡╤╧╪╓╖╙╜╟╢╥╨╫╭╮╯╰", "+"),
        **dict.fromkeys("█▓▒░■▪◼⬛", "#"),
        **dict.fromkeys("●⚫", "*"),
        **dict.fromkeys("○⚪", "o"),
        **dict(zip("‘’“”•←↑→↓♔♕♖♗♘♙♚♛♜♝♞♟♠♥♦♣", "''\"\"*<^>vKQRBNPkqrbnpSHDC", strict=True)),  # noqa: RUF001
    }
)
"""What stands for characters that the font does not have: one for each, so that boards keep their form."""


class DrawnMessage(NamedTuple):
    """A message as it is drawn."""

    role: str
    """Who said it; it gives the colour."""
    text: str


def draw_page(blocks: Sequence[DrawnMessage]) -> Picture:
    """Return the end of a conversation as a picture of `PAGE_SHAPE`.

    Long lines are wrapped, and of what has no room the oldest is left out. The font has the characters of Latin-1 only; similar ones
    stand for some others (``+`` for corners of boxes, ``K`` for a king), and ``?`` for the rest.

    Args:
        blocks: The messages, the newest last.

    Raises:
        MissingExtra: If Pillow is not installed.
    """
    lines: list[tuple[str, tuple[int, int, int]]] = []
    for role, text in reversed(blocks):
        colour = _COLOURS.get(role, _OTHER_COLOUR)
        lines[:0] = [*((line, colour) for line in _wrap(f"[{role}]\n{text}")), ("", colour)]
        if len(lines) > LINES:
            break
    height, width = PAGE_SHAPE[0] // _SCALE, PAGE_SHAPE[1] // _SCALE
    image_module, draw_module, font = _pillow()
    page = image_module.new("RGB", (width, height), _BACKGROUND)
    pen = draw_module.Draw(page)
    for number, (line, colour) in enumerate(lines[-LINES - 1 : -1]):
        pen.text((_MARGIN, _MARGIN + number * _CELL_HEIGHT), line, font=font, fill=colour)
    return np.asarray(page).repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)


def _wrap(text: str) -> list[str]:
    """Return the last lines of a text, none of them too long."""
    text = _in_latin1(text[-LINES * (COLUMNS + 1) :].expandtabs(4))
    return [
        wrapped
        for line in text.splitlines()
        for wrapped in textwrap.wrap(line, COLUMNS, replace_whitespace=False, drop_whitespace=False) or [""]
    ]


def _in_latin1(text: str) -> str:
    """Return a text in the characters that the font has."""
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFKC", text.translate(_SIMILAR))
    return composed.encode("latin-1", "replace").decode("latin-1")


@functools.cache
def _pillow() -> tuple[Any, Any, Any]:
    """Return Pillow's modules for images and for drawing, and its bitmap font, which alone has characters of one width."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise MissingExtra("images", 'render_mode="rgb_array"') from error
    return Image, ImageDraw, ImageFont.load_default_imagefont()


def as_picture(drawn: Any) -> Picture:
    """Return an image in grey, in colours, or in colours with opacity as a picture in colours.

    Raises:
        ConfigurationError: If it is not an image of uint8.
    """
    picture = np.asarray(drawn)
    if picture.ndim == 2:
        picture = picture[:, :, None]
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] not in (1, 3, 4) or not picture.size:
        came = f"{picture.dtype} of shape {picture.shape}" if isinstance(drawn, np.ndarray) else type(drawn).__name__
        raise ConfigurationError(f"expected a picture, an array of uint8 of shape (height, width, 3), got {came}")
    return picture.repeat(3, axis=2) if picture.shape[2] == 1 else picture[:, :, :3]


def fit_picture(picture: Picture, shape: tuple[int, ...]) -> Picture:
    """Return a picture in a given shape: as it is where it has this shape, else as large as fits, in the middle.

    >>> fit_picture(np.full((10, 40, 3), 255, np.uint8), (20, 20, 3))[:, 0, 0].tolist().count(255)
    5
    """
    if picture.shape == shape:
        return picture
    scale = min(shape[0] / picture.shape[0], shape[1] / picture.shape[1])
    height, width = (max(1, min(most, round(length * scale))) for length, most in zip(picture.shape[:2], shape, strict=False))
    rows = np.arange(height) * picture.shape[0] // height
    columns = np.arange(width) * picture.shape[1] // width
    fitted = np.zeros(shape, np.uint8)
    top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
    fitted[top : top + height, left : left + width] = picture[rows][:, columns]
    return fitted
