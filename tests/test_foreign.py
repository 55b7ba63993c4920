"""Other people's packages: their warnings are not for who plays, and what they make is recognised without importing them."""

from __future__ import annotations

import threading
import warnings

import pytest

from vfgym.foreign import is_pettingzoo, mute_warnings


def test_warnings_are_muted_inside_alone() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for error in (None, KeyError):
            try:
                with mute_warnings(), mute_warnings():
                    warnings.warn("inside", stacklevel=1)
                    if error:
                        raise error
            except KeyError:
                pass
        warnings.warn("outside", stacklevel=1)
    assert [str(each.message) for each in told] == ["outside"]


def test_threads_restore_the_filters_one_after_the_other() -> None:
    before = warnings.filters[:]
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with mute_warnings():
            entered.set()
            leave.wait()

    def second() -> None:
        with mute_warnings():
            pass

    threads = [threading.Thread(target=first)]
    threads[0].start()
    entered.wait()
    threads.append(threading.Thread(target=second))
    threads[1].start()
    leave.set()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


@pytest.mark.parametrize(("module", "expected"), [("pettingzoo.utils.env", True), ("pettingzoo_like", False), ("builtins", False)])
def test_what_is_of_pettingzoo(module: str, expected: bool) -> None:
    base = type("Base", (), {"__module__": module})
    assert is_pettingzoo(type("Mine", (base,), {})()) is expected
