"""`checks`: one for each promise that concerns an environment, and each says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

import vfgym
from tests.environments import Talk
from tests.testing.grocer import Grocer
from vfgym import Rubric
from vfgym.errors import ConfigurationError
from vfgym.testing import check_environment, checks


def names(env: Any) -> list[str]:
    return [str(check) for check in checks(env)]


def test_there_is_a_check_for_each_promise_that_concerns_the_environment() -> None:
    library = [check.promise for check in check_environment(Talk)]
    assert names(Talk) == [
        *library,
        "loses no message of the conversation",
        "pays within the range that it declares",
        "pays more for a right answer than for a wrong one",
        "pays nothing for silence, failure and garbage",
        "replays the same episodes in another process",
    ]
    with_tools = set(names(Grocer)) - set(names(Talk))
    assert with_tools == {"answers each tool call with one message, in order", "its tools take what their schemas say"}
    assert set(names(Talk)) - set(names(lambda: Talk())) == {"replays the same episodes in another process"}
    assert "its spec survives JSON" in names("gymnasium/FrozenLake-v1")


def test_a_check_returns_what_was_compared_and_can_be_repeated() -> None:
    by_name = {str(check): check for check in checks(lambda: Talk(max_turns=2))}
    for _ in range(2):
        assert by_name["loses no message of the conversation"]() == "6 turns"


def test_environments_of_checks_are_closed_however_they_end() -> None:
    made: list[Closing] = []

    class Closing(Talk):
        def __init__(self) -> None:
            super().__init__(max_turns=2, rubric=Rubric(lambda completion: 1.0))
            self.closed = False
            made.append(self)

        @vfgym.teardown
        def note(self) -> None:
            self.closed = True

    found = checks(lambda: Closing())
    assert [env.closed for env in made] == [True]
    for check in found:
        try:
            check()
        except AssertionError:
            assert str(check) in ("pays nothing for silence, failure and garbage", "pays more for a right answer than for a wrong one")
    assert len(made) > len(found)
    assert all(env.closed for env in made)


def test_an_environment_that_scores_groups_has_one_check_which_says_so() -> None:
    [check] = checks(lambda: Talk(rubric=Rubric(lambda completions: [0.0 for _ in completions])))
    with pytest.raises(AssertionError, match="a promise is broken: can be stepped alone\nthe rubric scores whole groups"):
        check()


def test_what_may_be_paid_for_nothing_is_passed_on() -> None:
    def make() -> Talk:
        return Talk(max_turns=2, rubric=Rubric(lambda completion: 0.5))

    for paid, is_fine in ((0.5, True), (0.0, False)):
        [check] = [check for check in checks(make, paid_for_nothing=paid) if check.promise.startswith("pays nothing")]
        if is_fine:
            assert check() == "8 episodes"
        else:
            with pytest.raises(AssertionError, match=r"earned 0.5, and should earn 0 at most"):
                check()


def test_what_is_no_environment_is_refused_when_checks_are_listed() -> None:
    with pytest.raises(ConfigurationError, match="a function that makes the environment anew each time"):
        checks(Talk())  # type: ignore[arg-type]
