"""Numbers as models write them: any dash is a minus sign, a unit changes nothing, and what changes a number is not read."""

from __future__ import annotations

import math

import pytest

from vfgym.codecs.numbers import DASHES, number_of, read_quantity, with_plain_signs


@pytest.mark.parametrize("dash", DASHES)
def test_every_dash_is_a_minus_sign(dash: str) -> None:
    assert with_plain_signs(f"{dash}1") == "-1"
    assert number_of(f"{dash}1.5") == read_quantity(f" {dash}1.5 ") == -1.5


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+3", 3),
        (".5", 0.5),
        ("3.", 3.0),
        ("1e-2", 0.01),
        ("1E2 Nm", 100.0),
        ("3 m/s", 3),
        ("3m/s", 3),
        ("-inf", -math.inf),
        ("Infinity", math.inf),
    ],
)
def test_a_number_may_have_a_unit(text: str, number: float) -> None:
    assert read_quantity(text) == number
    assert type(read_quantity(text)) is type(number)


def test_nan_is_a_number() -> None:
    assert math.isnan(read_quantity("NaN") or 0)


@pytest.mark.parametrize("text", ["", "x", "50 %", "1/2", "0,5", "1-2", "--1", "1 2", "3 apples", "3 m/s faster", "e5", "1e", "0x1"])
def test_what_changes_a_number_is_no_unit(text: str) -> None:
    assert read_quantity(text) is None


def test_a_number_of_many_digits_is_read() -> None:
    assert number_of("9" * 30) == int("9" * 30)
    assert number_of("9" * 5000) == math.inf
