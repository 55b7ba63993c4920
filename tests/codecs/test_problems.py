"""What is wrong with an answer is said in a sentence for the model, with the place where it is wrong."""

from __future__ import annotations

import pytest

from vfgym.codecs.problems import ActionNotFound, AnswerUnclear, several_actions


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ((), "The action must be 1"),
        (("element 2",), "Element 2 must be 1"),
        (("element 2", "`thrust`"), "Element 2 of `thrust` must be 1"),
        (("`move`",), "`move` must be 1"),
    ],
)
def test_a_problem_is_a_sentence_that_begins_with_its_place(places: tuple[str, ...], sentence: str) -> None:
    error = ActionNotFound("must be 1", *places)
    assert (error.sentence(), str(error)) == (sentence, "must be 1")
    assert isinstance(error, ValueError)


def test_what_is_unclear_as_a_whole_has_no_place_and_four_actions_are_named_in_short() -> None:
    error = AnswerUnclear("Your answer names none")
    error.places.append("element 1")
    assert error.sentence() == "Your answer names none"
    error = several_actions(["a" * 40, "b" * 41, "c", "d", "e"])
    assert str(error) == f"Your answer names 5 different actions ({'a' * 40}, {'b' * 30}..., c, d): name one"
