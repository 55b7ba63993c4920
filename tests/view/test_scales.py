"""Scales of pictures: whatever the numbers are, they are counted or there is no scale."""

from __future__ import annotations

import pytest

from vfgym.view.scales import histogram_of, scale_of


@pytest.mark.parametrize("value", [0.0, 1e308, -1e308, 1.7e308, 1e-308])
def test_numbers_at_the_ends_of_floats_are_counted_or_have_no_scale(value: float) -> None:
    scale = scale_of([0.0, value])
    assert scale is None or sum(histogram_of([0.0, value], scale)) == 2
