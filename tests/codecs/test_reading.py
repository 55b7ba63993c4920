"""Reading forgives format, not meaning, and says what is wrong so that a model can do better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs import codecs
from tests.codecs.codecs import floats, moves
from tests.codecs.spaces import same
from vfgym.codecs import ActionNotFound, codec_for
from vfgym.codecs.problems import CUT_OFF, STILL_THINKING
from vfgym.codecs.reading import read_answer, tail_of


def rows(kind: str) -> list[Any]:
    """Return the codecs of the answers of a kind in ``answers_by_the_rule.json``, each with its answers and what comes of them."""
    found = json.loads((Path(__file__).parent / "data" / "answers_by_the_rule.json").read_text(encoding="utf-8"))[kind]
    return [pytest.param(getattr(codecs, name), rows_of_it, id=name) for name, rows_of_it in found.items()]


@pytest.mark.parametrize(("codec", "answers"), rows("readable"))
def test_format_is_forgiven(codec: Any, answers: list[tuple[str, Any]]) -> None:
    for text, data in answers:
        read = codec.decode(text)
        assert read in codec.space, text
        assert codec.to_json(read) == data, text
        assert same(read, codec.decode(codec.encode(codec.from_json(data)))), text


@pytest.mark.parametrize(("codec", "answers"), [*rows("asked_again"), (codecs.WIDE, ["9" * 5000])])
def test_what_is_not_marked_as_an_action_is_asked_again(codec: Any, answers: list[str]) -> None:
    for text in answers:
        with pytest.raises(ActionNotFound) as caught:
            pytest.fail(f"{text!r} is read as {codec.decode(text)!r}")
        assert codec.listing() in str(caught.value), text


ENDLESS = [
    (codecs.COUNTS, [(f"[{'9' * 5000}, 0]", "Element 1 must be a whole number")]),
    (codecs.NET, [("[" * 5000, "names no action"), ("{'a':" * 5000, "names no action")]),
]


@pytest.mark.parametrize(("codec", "answers"), [*rows("refused"), *ENDLESS])
def test_meaning_is_not_forgiven(codec: Any, answers: list[tuple[str, str]]) -> None:
    for text, problem in answers:
        with pytest.raises(ActionNotFound) as caught:
            pytest.fail(f"{text!r} is read as {codec.decode(text)!r}")
        assert problem in str(caught.value), text
        assert str(caught.value).endswith(f"Valid actions: {codec.listing()}."), text


HARMLESS = [
    *("{}", " {} \n", "**{}**", "`{}`", "_{}_", "'{}'", "\u201c{}\u201d", "({})", "[{}]", "<{}>", "$\\boxed{{{}}}$", "{}.", "{}!", "- {}"),
    *("* {}", "> {}", "-> {}", "\u2014 {}", "Action: {}", "**Action:** {}", "My final answer is {}.", "Let us take {}, then."),
    *("At leg2, in the 2nd try, {} is best", "Not sure... {}", "{} Nm", "{}Nm", "torque={}", "```\n{}\n```"),
    *('```json\n{{"action": {}}}\n```', "{{'action': {}}}", '{{"reason": "It is 2 steps away", "action": {}}}', "<action>{}</action>"),
    *("<Action> {} </Action> as I said", "<think>1 or 2?</think>{}", "<THINKING>-1</THINKING>\n{}<think>or 0", "<think>{}"),
]
"""What may stand around a value and leaves it what it is; or the answer is cut off."""

TWISTING = [
    *("1. {}", "torque-{}", "x{}", "{}\u2013", "a range of 0-{}", "about \u00b1{}", "3 * {}", "minus {}", "not {}", "{} or {}"),
    *("[{}, {}]", "{}%", "{}k", "{}.5", "{}/2", "{}^2"),
]
"""What may make another value of it, or two."""

VALUES: list[tuple[Any, list[Any]]] = [
    (codecs.MOVES, [moves(0), moves(3)]),
    (codecs.LEVERS, [moves(0), moves(1), moves(2)]),
    (codecs.FORCES, [moves(0), moves(1), moves(2)]),
    (codecs.TAXI, [moves(0), moves(2)]),
    (codecs.CELLS, [moves(0), moves(3)]),
    (codecs.SHIFTED, [moves(-1), moves(0), moves(1)]),
    (codecs.WIDE, [moves(12), moves(999)]),
    (codecs.TORQUE, [floats(-1.75), floats(0.5), floats(2), floats(-1e-05)]),
    (codecs.DRIVE, [floats(-0.5, 1)]),
    (codecs.KNOBS, [np.array([2, 1])]),
]


@given(st.sampled_from(VALUES), st.data())
@settings(max_examples=250)
def test_nothing_around_a_value_makes_another_one_of_it(case: tuple[Any, list[Any]], data: st.DataObject) -> None:
    """The value that is written is read, or the answer is refused: with any dash, with or without brackets."""
    codec, values = case
    value = data.draw(st.sampled_from(values))
    written = codec.encode(value).replace("-", data.draw(st.sampled_from("-\u2212\u2013\u2010\uff0d")))
    if codec is codecs.TORQUE and data.draw(st.booleans()):
        written = written.strip("[]")
    if codec in (codecs.MOVES, codecs.TAXI) and data.draw(st.booleans()):
        written = str(int(value))
    twisted = data.draw(st.sampled_from(["{}", *TWISTING]))
    written = twisted.format(written, written)
    for form in data.draw(st.lists(st.sampled_from(HARMLESS), max_size=2)):
        written = form.format(written)
    try:
        read = codec.decode(written)
    except ActionNotFound:
        return
    if twisted == "minus {}" and codec in (codecs.TORQUE, codecs.SHIFTED):
        read = -read
    assert codec.encode(read) == codec.encode(value), written


def test_the_last_line_of_a_long_answer_is_read() -> None:
    assert codecs.TORQUE.decode("I look at x.\n" * 10_000 + "0.5") == floats(0.5)
    with pytest.raises(ActionNotFound, match="names no action"):
        codecs.TORQUE.decode("0.5\n" + "I look at x.\n" * 10_000)


@pytest.mark.parametrize(
    ("longest", "actions", "characters"), [(0, 1, 10**5), (50_000, 1, 10**5), (60_000, 1, 120_000), (60_000, 3, 360_000)]
)
def test_actions_are_looked_for_in_a_tail_that_has_room_for_them(longest: int, actions: int, characters: int) -> None:
    codec = codec_for(gs.Text(5))
    codec.longest = longest
    assert tail_of("a" + "x" * 400_000, codec, actions) == "x" * characters
    assert tail_of("abc", codec, actions) == "abc"


WAYS = codec_for(gs.Discrete(2), ["left", "right"])
PAIR = codec_for(gs.MultiDiscrete([3, 3]))


@pytest.mark.parametrize(
    ("codec", "answer", "whole", "cut"),
    [
        (WAYS, "left", 0, None),
        (WAYS, "I go on.\nleft", 0, None),
        (WAYS, "<action>left</action>", 0, 0),
        (WAYS, "<action>left", 0, None),
        (WAYS, "\\boxed{right}", 1, 1),
        (WAYS, '{"action": "right"}', 1, 1),
        (WAYS, "<action>left</action> or rather <action>right", None, 0),
        (PAIR, "[1, 2]", [1, 2], [1, 2]),
        (PAIR, "[1, 2", None, None),
        (WAYS, "<think>left</think>right", 1, None),
        (WAYS, "", None, None),
    ],
)
def test_of_an_answer_that_was_cut_off_only_what_is_closed_counts(codec: Any, answer: str, whole: Any, cut: Any) -> None:
    for is_cut_off, expected in ((False, whole), (True, cut)):
        if expected is None:
            with pytest.raises(ActionNotFound) as caught:
                read_answer(answer, codec, is_cut_off=is_cut_off)
            assert (CUT_OFF in str(caught.value)) == is_cut_off
        else:
            assert np.array_equal(read_answer(answer, codec, is_cut_off=is_cut_off), expected)


@pytest.mark.parametrize(("is_cut_off", "says"), [(False, STILL_THINKING), (True, CUT_OFF)])
def test_thinking_that_does_not_end_names_no_action(is_cut_off: bool, says: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        read_answer("<think>I go\n<action>left</action>", WAYS, is_cut_off=is_cut_off)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("tokens", "is_dropped"),
    [
        *((tokens, True) for tokens in ("<|im_end|>", "</s>", " </s></s>", "<|eot_id|>\n<|end_of_text|> </s>", f"<|{'x' * 40}|>")),
        *((tokens, False) for tokens in (f"<|{'x' * 41}|>", "<||>", "<|a\nb|>", "</s> .", "<s>")),
    ],
)
def test_tokens_of_chat_templates_at_the_end_are_dropped(tokens: str, is_dropped: bool) -> None:
    codec = codec_for(gs.Text(60, charset="go<>|/xs "))
    if is_dropped:
        assert WAYS.decode(f"left{tokens}") == 0
        assert codec.decode(f"go{tokens}") == "go"
    else:
        with pytest.raises(ActionNotFound):
            WAYS.decode(f"left{tokens}")


def test_eight_marks_inside_each_other_are_read() -> None:
    def nested(depth: int) -> str:
        return "\\boxed{" * depth + "left" + "}" * depth

    assert WAYS.decode(nested(8)) == 0
    with pytest.raises(ActionNotFound, match="is not an action"):
        WAYS.decode(nested(9))


def test_a_mark_that_is_not_an_action_is_quoted_and_a_long_one_in_part() -> None:
    for text, quoted in (("up\nor  down", "'up or down'"), ("u" * 60, f"'{'u' * 60}'"), ("u" * 61, f"'{'u' * 50}...'")):
        with pytest.raises(ActionNotFound) as caught:
            WAYS.decode(f"<action>{text}</action>")
        assert f"{quoted} is not an action" in str(caught.value)
