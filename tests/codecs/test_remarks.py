"""What stands beside an action in a mark: brackets, a label, a remark."""

from __future__ import annotations

import pytest

from vfgym.codecs.remarks import in_parentheses, remarked, without_brackets, without_label


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        *(
            ("[4]", "4"),
            ("( 4 )", "4"),
            ("{a b}", "a b"),
            ("<x>", "x"),
            ("\u300c4\u300d", "4"),
            ("\u300e4\u300f", "4"),
            ("\u30104\u3011", "4"),
            ("\uff084\uff09", "4"),
            ("]4[", None),
            ("[4)", None),
            ("[]", None),
        ),
        *(("[a] [b]", None), ("4", None), ("[", None), ("", None)),
    ],
)
def test_one_pair_of_brackets_is_taken_off(text: str, inner: str | None) -> None:
    assert without_brackets(text) == inner


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Position: 4", ("position", "4")),
        ("my move = (1, 2)", ("my move", "(1, 2)")),
        ("x\uff1ay: z", ("x", "y: z")),
        ("4: x", None),
        ("a:", None),
        ("x" * 50 + ": 1", None),
    ],
)
def test_a_label_is_what_stands_before_a_colon(text: str, parts: tuple[str, str] | None) -> None:
    assert without_label(text) == parts


def test_a_remark_may_stand_in_parentheses_at_the_end() -> None:
    found = in_parentheses("main engine (it\nfalls)")
    assert found is not None
    assert (found.action, found.remark, found.is_in_parentheses, found.is_reason) == ("main engine", "it\nfalls", True, False)
    assert [in_parentheses(text) for text in ("(1)", "a (b) c", "a (b(c))", "a")] == [None] * 4


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("down, it is free", [("down", "it is free", False)]),
        ("2 because it is free", [("2", "because it is free", True)]),
        ("2, because it is free", [("2", "because it is free", True), ("2,", "because it is free", True)]),
        ("2 - for safety", [("2", "for safety", True)]),
        ("2 - for 3 steps", [("2", "for 3 steps", False)]),
        *[(f"left{sign}free", [("left", "free", False)]) for sign in (", ", "; ", ". ", "! ", ": ", "\n", " - ", " \u2013 ", " = ")],
        *[(f"left{sign}free", [("left", "free", False)]) for sign in "\uff0c\u3002\uff1b\uff1a\u3001\u2014"],
        ("2=left", [("2", "left", False)]),
        ("1.5", []),
        ("a-b", []),
        (", a", []),
        ("left,", []),
        ("becauses", []),
    ],
)
def test_remarks_begin_with_a_sign_or_a_reason(text: str, parts: list[tuple[str, str, bool]]) -> None:
    assert [(each.action, each.remark, each.is_reason) for each in remarked(text)] == parts


def test_few_beginnings_are_tried() -> None:
    assert len([*remarked("a, " * 50)]) == 8
