"""Emoji and other small pictures, which decorate answers and say nothing but, at most, a direction."""

from __future__ import annotations

import re

PICTURES = (
    "[\u2192\u21d2\u25b6\u2705\u2713\u2714\u2728\u270a-\u270d\u2b05-\u2b07\u2b50\u26a1\u27a1\ufe0f\u200d"
    "\U0001f300-\U0001f44d\U0001f44f-\U0001f533\U0001f54a-\U0001f644\U0001f646-\U0001f64f\U0001f680-\U0001f6aa\U0001f6ac-\U0001f6d0"
    "\U0001f900-\U0001f913\U0001f915-\U0001f936\U0001f938-\U0001f9ff\U0001fa70-\U0001faff]"
)
"""A set of a regular expression: without those that say no or doubt (crosses, thumbs down, stop signs, shrugs), and without figures of
chess, cards, dice and coloured shapes, which may be a part of a move."""

_AROUND = re.compile(rf"[\s{PICTURES[1:-1]}]*+")
_DIRECTIONS = {
    **dict.fromkeys("\u2b05\U0001f448", "left"),
    **dict.fromkeys("\u27a1\U0001f449", "right"),
    **dict.fromkeys("\u2b06\U0001f446\U0001f51d", "up"),
    **dict.fromkeys("\u2b07\U0001f447", "down"),
}


def without_pictures(text: str) -> tuple[str, set[str]]:
    r"""Return a text without the pictures at its ends, and the directions in which they point.

    >>> without_pictures("left \u2b05\ufe0f\u2728")
    ('left', {'left'})
    """
    if text.isascii():
        return text, set()
    start = _AROUND.match(text).end()  # type: ignore[union-attr]
    rest = text[start:]
    end = len(rest) - _AROUND.match(rest[::-1]).end()  # type: ignore[union-attr]
    around = text[:start] + rest[end:]
    return rest[:end], {_DIRECTIONS[picture] for picture in around if picture in _DIRECTIONS}
