"""Labels: which lines begin with one, in whichever language, and what they label."""

from __future__ import annotations

import pytest

from vfgym.codecs.labels import find_labelled, is_label


def labelled(text: str, *, is_spaced: bool = False) -> list[str]:
    return [part.content for part in find_labelled(text, "act", is_spaced=is_spaced)]


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("Action: left", ["left"]),
        ("**My final answer:** left", ["left"]),
        ("**Action: left**", ["left"]),
        *[(f"{sign}Action: left{sign}", ["left"]) for sign in ("_", "__", "*", "`")],
        *[(f"Action {sign} left", ["left"]) for sign in (":", "=", ":=", "=>", "==", "\uff1a", "\u2192", "\u21d2")],
        *[(f"{before} Action: left", ["left"]) for before in (">", "#", "*", "+", "~", "\u2022", "1.", "12)")],
        ("Action: {'a':\n 2}\nright", ["{'a':\n 2}"]),
        ("Action: (1,\n 2)\nright", ["(1,\n 2)"]),
        ("Action: [1,\n 2]\nMove: [3,\n 4]\n", ["[1,\n 2]", "[3,\n 4]"]),
        ("Action: [1,\n 2", ["[1,"]),
        ("Action: walk\nAction Input: left", ["walk", "left"]),
        ("- Action = left\n2) Move: right", ["left", "right"]),
        ("Action:\n\n  left\nright", ["left"]),
        ("Action:", [""]),
        ("Action: [1,\n 2]\nright", ["[1,\n 2]"]),
        ("Action: [1, 2] or so", ["[1, 2] or so"]),
        ("Action:\n```\nleft\n```\nright", ["left\n"]),
        ("R\u00e9ponse finale : gauche", ["gauche"]),
        ("\u52a8\u4f5c\uff1a\u5de6", ["\u5de6"]),
        ("\U0001f449 Action \u2192 left", ["left"]),
        ("Reaction: left", []),
        ("My opponent's action: left", []),
        ("The action of the day that we all like so much and play on and on and on: left", []),
        ("Action: act\nAction Input: left", ["left"]),
        ("Action: act", ["act"]),
        ("I say: Action: left", []),
    ],
)
def test_a_label_marks_the_rest_of_its_line_or_the_next_one(text: str, contents: list[str]) -> None:
    assert labelled(text) == contents


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("Answer - left", ["left"]),
        ("My move is **left**", ["left"]),
        *[(f"Answer {sign} left", ["left"]) for sign in "\u2013\u2014"],
        *[(f"My move is {quoted}", [quoted]) for quoted in ("4", '"left"', "\u201cleft\u201d", "`left`")],
        ("Answer - left\nMove - right", ["left", "right"]),
        ("My move is left", []),
        ("Answer - 4", []),
        ("Action: left", []),
    ],
)
def test_labels_without_a_colon_are_another_kind(text: str, contents: list[str]) -> None:
    assert labelled(text, is_spaced=True) == contents
    assert not contents or labelled(text) == []


def test_a_part_begins_with_its_label() -> None:
    text = "Well.\n> Action: left \nIt is."
    (part,) = find_labelled(text, "act")
    assert text[part.start : part.end] == "> Action: left "


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        *(("Action", True), ("**My final answer**", True), ("1. Move", True), ("my final", False), ("", False), ("left", False)),
        ("\u884c\u52d5", True),
    ],
)
def test_a_label_has_a_word_of_labels_and_none_that_says_more(head: str, is_one: bool) -> None:
    assert is_label(head) is is_one
