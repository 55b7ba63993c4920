"""An environment of an author, tested with the kit in ten lines; then with faults, each of which a check finds and explains."""

from __future__ import annotations

import pytest

from tests.testing.grocer import Grocer
from vfgym.testing import EnvironmentCheck, call, checks, play


@pytest.mark.parametrize("check", checks(Grocer), ids=str)
def test_it_keeps_its_promises(check: EnvironmentCheck) -> None:
    check()


def test_the_cheaper_stall_is_right() -> None:
    asked = play(Grocer(), [[call("price", stall="left"), call("price", stall="right")]], options={"example_id": 1})
    left, right = (int(reply.content) for reply in asked.replies[0])
    stall = "left" if left < right else "right"
    played = play(Grocer(), [call("buy", stall=stall, amount=3), f"That was {3 * min(left, right)} in all."], options={"example_id": 1})
    played.expect(reward=1.5, metrics={"bought": 1.0, "buy_calls": 1.0}, stop_condition="no_tools_called", ending="terminated")
