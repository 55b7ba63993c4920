"""Pages: the end of a conversation as pixels, always of one shape; pictures that are fitted into a shape."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.output import pictures
from vfgym.output.pictures import COLUMNS, LINES, PAGE_SHAPE, DrawnMessage, as_picture, draw_page, fit_picture

pytest.importorskip("PIL", reason="needs the extra images")

CELL = (24, 12)
"""Height and width of a character on a page."""


def cell(page: pictures.Picture, line: int, column: int) -> bytes:
    """Return the pixels of one character of a page."""
    top, left = 16 + line * CELL[0], 16 + column * CELL[1]
    return page[top : top + CELL[0], left : left + CELL[1]].tobytes()


def written(page: pictures.Picture, text: str, role: str = "user") -> bool:
    """Say whether the last line of a page is a text, as far as it goes."""
    plain = draw_page([DrawnMessage(role, "\n".join(["x"] * (LINES - 1) + [text]))])
    return all(cell(page, LINES - 1, column) == cell(plain, LINES - 1, column) for column in range(len(text)))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system", "tool", "text"]), st.text(max_size=300)), max_size=40))
def test_every_page_has_the_same_shape(blocks: list[tuple[str, str]]) -> None:
    page = draw_page([DrawnMessage(*block) for block in blocks])
    assert page.shape == PAGE_SHAPE == (704, 992, 3), "80 characters and 28 lines, in multiples of 16 pixels"
    assert page.dtype == np.uint8


def test_what_fits_begins_at_the_top_and_the_newest_stands_at_the_bottom() -> None:
    page = draw_page([DrawnMessage("user", "short")])
    assert not np.ptp(page[16 + 3 * CELL[0] :], axis=(0, 1)).any()
    assert np.ptp(page[16 : 16 + 2 * CELL[0]])
    page = draw_page([DrawnMessage("user", f"message {number}") for number in range(100)])
    assert written(page, "message 99")
    long = draw_page([DrawnMessage("user", "\n".join(f"line {number}" for number in range(500)))])
    assert written(long, "line 499")


def test_long_lines_are_wrapped_between_words_and_spaces_keep_a_board_in_form() -> None:
    words = "word " * 40
    page = draw_page([DrawnMessage("user", words + "end")])
    assert cell(page, 1, 0) == cell(page, 2, 0) == cell(page, 3, 0)  # each line begins with a word
    unbroken = draw_page([DrawnMessage("user", "a" * (COLUMNS + 1))])
    assert cell(unbroken, 2, 0) == cell(unbroken, 1, COLUMNS - 1) != cell(unbroken, 2, 1)
    page = draw_page([DrawnMessage("user", "a   b\n    b\n\tb")])
    assert cell(page, 1, 4) == cell(page, 2, 4) == cell(page, 3, 4) != cell(page, 2, 0)


def test_who_speaks_is_seen_by_the_colour() -> None:
    pages = [draw_page([DrawnMessage(role, "The same")]) for role in ("user", "assistant", "tool", "system")]
    assert len({cell(page, 1, 0) for page in pages}) == 4


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("┌─┐", "+-+"),
        ("│║", "||"),
        ("♔♞", "Kn"),
        ("“é”\u2018s\u2019", "\"é\"'s'"),
        ("♔♕♖♗♘♙♚♛♜♝♞♟", "KQRBNPkqrbnp"),
        ("♠♥♦♣", "SHDC"),
        ("←↑→↓", "<^>v"),
        ("•●⚫○⚪", "***oo"),
        ("█▓▒░■", "#####"),
        ("\u2013—═╌", "----"),
        ("╔╦╗╰╯", "+++++"),
        ("ﬁ", "fi"),
        ("字\N{PILE OF POO}", "??"),
    ],
)
def test_characters_that_the_font_lacks_have_one_in_their_place(text: str, like: str) -> None:
    assert np.array_equal(draw_page([DrawnMessage("user", text)]), draw_page([DrawnMessage("user", like)]))


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    pictures._pillow.cache_clear()
    with pytest.raises(MissingExtra, match=r'render_mode="rgb_array" .*vfgym\[images\]'):
        draw_page([])


# Pictures of other shapes


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 1), (4, 6, 3), (4, 6, 4)])
def test_images_of_every_kind_become_pictures_in_colours(shape: tuple[int, ...]) -> None:
    frame = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    picture = as_picture(frame)
    assert picture.shape == (4, 6, 3)
    for channel in range(3):
        assert np.array_equal(picture[:, :, channel], frame.reshape(4, 6, -1)[:, :, channel if frame.size > 24 else 0])


@pytest.mark.parametrize("drawn", [None, "drawing", np.zeros((2, 2, 3)), np.zeros((0, 4, 3), np.uint8), np.zeros((2, 2, 2), np.uint8)])
def test_what_is_no_picture_is_refused(drawn: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"expected a picture, .* got"):
        as_picture(drawn)


@settings(max_examples=30)
@given(st.tuples(*[st.integers(1, 30)] * 2), st.tuples(*[st.integers(1, 30)] * 2))
def test_a_fitted_picture_has_the_shape_and_fills_it_one_way(size: tuple[int, int], wanted: tuple[int, int]) -> None:
    fitted = fit_picture(np.full((*size, 3), 200, np.uint8), (*wanted, 3))
    assert fitted.shape == (*wanted, 3)
    lit = fitted[:, :, 0] > 0
    assert lit.any(axis=1).all() or lit.any(axis=0).all()


def test_a_fitted_picture_stands_in_the_middle_and_keeps_its_form() -> None:
    picture = np.array([[[10] * 3, [20] * 3], [[30] * 3, [40] * 3]], np.uint8)
    larger = [[10, 10, 20, 20], [10, 10, 20, 20], [30, 30, 40, 40], [30, 30, 40, 40]]
    assert fit_picture(picture, (4, 4, 3))[:, :, 1].tolist() == larger
    assert fit_picture(picture, (4, 6, 3))[:, :, 2].tolist() == [[0, *line, 0] for line in larger]
    assert fit_picture(picture, (8, 4, 3))[:, :, 0].tolist() == [[0] * 4] * 2 + larger + [[0] * 4] * 2
    assert fit_picture(fit_picture(picture, (4, 4, 3)), (2, 2, 3)).tolist() == picture.tolist()


def test_messages_stand_in_their_order_below_who_said_them() -> None:
    page = draw_page([DrawnMessage("user", "a"), DrawnMessage("user", "b")])
    alone = {text: draw_page([DrawnMessage("user", text)]) for text in "ab"}
    assert [cell(page, line, 0) for line in range(5)] == [
        *[cell(alone["a"], line, 0) for line in range(3)],
        *[cell(alone["b"], line, 0) for line in range(2)],
    ]


def test_a_picture_of_the_right_shape_is_left_as_it_is() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (5, 7, 3), np.uint8)
    assert fit_picture(picture, (5, 7, 3)) is picture
