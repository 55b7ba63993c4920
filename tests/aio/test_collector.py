"""While runs play, garbage is collected seldom; afterwards as before, whatever the runs and others did."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import vfgym
from vfgym.aio.collector import OBJECTS, seldom_collecting


@pytest.fixture(autouse=True)
def before() -> Iterator[tuple[int, int, int]]:
    """The thresholds that tests find, and leave."""
    found = gc.get_threshold()
    gc.set_threshold(700, 11, 12)
    yield (700, 11, 12)
    gc.set_threshold(*found)


def test_it_lasts_as_long_as_the_last_of_several(before: tuple[int, int, int]) -> None:
    first, second = seldom_collecting(), seldom_collecting()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() == (OBJECTS, 11, 12)
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (OBJECTS, 11, 12)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before
    with pytest.raises(KeyboardInterrupt), seldom_collecting():
        raise KeyboardInterrupt
    assert gc.get_threshold() == before


@pytest.mark.parametrize("threshold", [0, OBJECTS, OBJECTS + 1])
def test_who_collects_more_seldom_or_never_keeps_that(threshold: int) -> None:
    gc.set_threshold(threshold, 5, 6)
    with seldom_collecting():
        assert gc.get_threshold() == (threshold, 5, 6)
    assert gc.get_threshold() == (threshold, 5, 6)


def test_what_others_set_meanwhile_stays() -> None:
    with seldom_collecting():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)
    with seldom_collecting():
        assert gc.get_threshold() == (OBJECTS, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)


def test_runs_do_it(before: tuple[int, int, int]) -> None:
    seen = []

    def agent(observation: Any, info: Any) -> str:
        seen.append(gc.get_threshold()[0])
        return "yes"

    env = vfgym.SingleTurnEnv(dataset=[{"question": "?"}], rubric=vfgym.Rubric(lambda: 1.0))
    vfgym.evaluate(env, agent, progress=False)
    assert seen == [OBJECTS]
    assert gc.get_threshold() == before
