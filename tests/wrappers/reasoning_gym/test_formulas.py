"""Which texts are formulas, and so may be evaluated."""

from __future__ import annotations

import pytest

from vfgym.wrappers.reasoning_gym.formulas import _FUNCTIONS, is_formula


@pytest.mark.parametrize(
    "text",
    [
        *("42", "-1.5", "x**2/2 + 3*x + C", "(8 - 2)*(3 + 1)", "(x**2 + 1)**10", "sqrt(x)*exp(-x**2) - log(x, 2)", "+x", "9**9**9"),
        *(f"{function}(x)" for function in sorted(_FUNCTIONS)),
    ],
)
def test_formulas(text: str) -> None:
    assert is_formula(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "6 * 4 = 24", "'a'", "x.y", "x[0]", "f(x)", "exp(x)(y)", "exp(x=1)", "exp(exit())", "x if y else z", "(" * 10_000, "\x00"),
        *("True", "None", "1j", "b'a'", "...", "[1]", "(1, 2)", "x < 1", "x and y", "lambda: 1", "x := 1", "f'{x}'", "exp(*x)", "1\n2"),
    ],
)
def test_texts_that_are_not_formulas(text: str) -> None:
    assert not is_formula(text)
