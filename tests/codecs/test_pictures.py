"""Pictures at the ends of a text are set aside, and say where they point."""

from __future__ import annotations

import pytest

from vfgym.codecs.pictures import without_pictures


@pytest.mark.parametrize(
    ("text", "rest", "directions"),
    [
        ("left", "left", set()),
        ("\u2b05\ufe0f left \u2728", "left", {"left"}),
        ("\u27a1 \U0001f449 go", "go", {"right"}),
        ("\u2b06\U0001f447", "", {"up", "down"}),
        ("\U0001f51d x \U0001f446", "x", {"up"}),
        ("a \u2b05 b", "a \u2b05 b", set()),
        ("\u2192 1 \u2705", "1", set()),
        ("\u274c 1", "\u274c 1", set()),
        ("\U0001f44e 1", "\U0001f44e 1", set()),
        ("\u265e e4", "\u265e e4", set()),
        ("1 \U0001f6d1", "1 \U0001f6d1", set()),
        ("\u5de6", "\u5de6", set()),
    ],
)
def test_what_decorates_is_set_aside_and_what_says_no_is_not(text: str, rest: str, directions: set[str]) -> None:
    assert without_pictures(text) == (rest, directions)
