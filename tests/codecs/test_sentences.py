"""What is said around a mark: corrections, questions, other people's moves, and what is not to be done."""

from __future__ import annotations

import pytest

from vfgym.codecs.labels import MarkedPart
from vfgym.codecs.sentences import is_doubtful, is_taken_back, turns, without_corrected, words_in


def test_words_are_folded_and_have_no_apostrophes() -> None:
    assert words_in("Don\u2019t GO 2 steps, it's \u00c9t\u00e9") == ["do", "not", "go", "steps", "its", "\u00e9t\u00e9"]


@pytest.mark.parametrize(
    ("remark", "is_turned", "is_turned_as_reason"),
    [
        *(("it is free", False, False), ("or right", True, True), ("if it is free", True, True), ("the right is not free", True, False)),
        *(("it isn't far", True, False), ("is it free", False, False), ("free?", True, True)),
        *(("\u7a7a\u3044\u3066\u3044\u308b", False, False), ("\u6216\u8005\u53f3", True, True), ("\u274c", True, True)),
        *[(f"free{sign}", True, True) for sign in "\uff1f\u061f\u00bf"],
        *[(sign, True, True) for sign in "\u2716\u2717\u2718\u274e\u26d4\U0001f44e\U0001f6ab\U0001f914\U0001f937"],
        *(("\u2705", False, False), ("", False, False)),
    ],
)
def test_alternatives_conditions_doubts_and_negations_turn_what_they_are_said_of(
    remark: str, is_turned: bool, is_turned_as_reason: bool
) -> None:
    assert (turns(remark), turns(remark, may_say_what_is_not=True)) == (is_turned, is_turned_as_reason)


@pytest.mark.parametrize(
    ("text", "is_in_doubt"),
    [
        ("I play {}.", False),
        ("I play {}?", True),
        ("Should I play {} now? I see.", True),
        ("Is it far? I play {}.", False),
        ("I must not play {}.", True),
        ("It is not far, so I play {}.", False),
        *[(f"It is not far{sign} I play {{}}", False) for sign in (",", ";", " \u2013", "\u2014", "\uff0c", " so", " but", " AND")],
        *[(f"It is not far{sign} I play {{}}", False) for sign in (" therefore", " then", ".", "!", "\u3002", "\uff01")],
        *[(f"I play {{}}, do I{sign}", True) for sign in "?\uff1f"],
        ("I play {} e.g. now?", True),
        ("What I must not forget: {}", False),
        ("What I must not forget\uff1a{}", False),
        ("Moves such as {}.", True),
        ("e.g. {}", True),
        ("Last time I played {}.", True),
        ("{} Wait, that is wrong.", True),
        ("{} is not what I play.", True),
        ("{}\nIt is not far.", False),
        ("No!\n{} it is", False),
        ("(1) {}", False),
        ("I will not crash. " + "So it goes on and on, " * 20 + "and I play {}.", False),
    ],
)
def test_a_mark_is_in_doubt_by_its_sentence(text: str, is_in_doubt: bool) -> None:
    before, _, after = text.partition("{}")
    assert is_doubtful(f"{before}[4]{after}", len(before), len(before) + 3) is is_in_doubt


def test_what_is_corrected_does_not_count() -> None:
    def kept(text: str) -> list[str]:
        marks = [MarkedPart(each, start := text.index(f"[{each}]"), start + 3) for each in "123" if f"[{each}]" in text]
        return [mark.content for mark in without_corrected(text, marks)]

    assert kept("[1] no, [2]") == ["2"]
    assert kept("[1] Wait: [2] Actually, [3]") == ["3"]
    assert kept("[1] and [2]") == ["1", "2"]
    assert kept("[1] no, [2] and [3]") == ["2", "3"]
    assert kept(f"[1] {'x ' * 400} no, [2]") == ["1", "2"]
    assert kept("[1]") == ["1"]
    assert kept("") == []
    again = "[1] no, [1]"
    alike = [MarkedPart("1", start, start + 3) for start in (0, 8)]
    assert without_corrected(again, alike) == alike


@pytest.mark.parametrize(
    ("after", "is_back"),
    [
        *[(f" {verb} not do.", True) for verb in ("is", "was", "Would", "will", "can", "could", "may", "might", "should")],
        *[(" Wait, I see. It is not far.", True), (" Wait, I see.\nIt is not far.", False), (" has not a chance", False)],
        ("", False),
        (" Wait, no.", True),
        (" Wait, I see.", False),
        (" would not do. Fine.", True),
        (" is good. It is not far.", False),
    ],
)
def test_only_a_correction_or_a_sentence_about_it_takes_a_mark_back(after: str, is_back: bool) -> None:
    assert is_taken_back(after) is is_back
