"""What a worker of `MathRubric` says of a response, and logs nothing of."""

from __future__ import annotations

import pytest

pytest.importorskip("math_verify")

from vfgym.rubrics.math_verification import is_right


@pytest.mark.parametrize(
    ("answer", "response", "right"),
    [
        *((r"\frac{1}{2}", "0.5", True), ("0.5", r"\frac{1}{2}", True), ("0", "0", True), ("2", "1+1", True)),
        *(("0", "1", False), ("1", "", False), ("", "1", False), (r"\{1, 2\}", r"\{2, 1\}", True), ("(1, 2)", "(2, 1)", False)),
        *(("1 < x < 2", "(1, 2)", True), ("(1, 2)", "1 < x < 2", False)),
    ],
)
def test_a_response_equals_the_answer(answer: str, response: str, right: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert is_right(answer, response) is right
    assert not caplog.records
