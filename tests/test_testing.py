"""`check_environment`: what an author's own loop can break, long episodes, and games in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit, TransformAction

from vfgym import MultiTurnEnv, Rubric, RubricGroup, SingleTurnEnv, State, cleanup, to_chat
from vfgym.errors import ConfigurationError
from vfgym.messages import Message, UserMessage
from vfgym.testing import check_environment

FACES = "step() and rollout() give equal states"
ONCE = "calls each reward function and each cleanup handler once for an episode"
WORDS = "reads each action of its game as it writes it"
LONGEST = 30
"""Turns after which a checked episode is cut off."""


class Talk(MultiTurnEnv):
    """Talks on, without an end where there is no limit."""

    def __init__(self, **kwargs: Any) -> None:
        rows = [{"question": f"{index}?", "answer": f"answer {index}"} for index in range(4)]
        rubric = RubricGroup([Rubric(self.length), Rubric(self.fails, weights=[0.0])])
        rubric.add_step_reward_func(self.one)
        super().__init__(**{"dataset": rows, "max_turns": -1, "rubric": rubric, **kwargs})

    async def length(self, completion: list[Message]) -> float:
        return float(len(completion))

    def fails(self, completion: list[Message]) -> float:
        raise ValueError("not today")

    def one(self, completion: list[Message]) -> float:
        return 1.0

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage("go on")]

    @cleanup
    def tidy(self, state: State) -> None:
        state["tidied"] = True


def broken(make: Callable[[], gymnasium.Env[Any, Any]]) -> dict[str, str]:
    """Return the promises that do not hold, with what the check says."""
    return {check.promise: check.detail for check in check_environment(make) if not check.passed}


def details(make: Callable[[], gymnasium.Env[Any, Any]]) -> dict[str, str]:
    return {check.promise: check.detail for check in check_environment(make)}


def test_an_episode_without_an_end_is_cut_off_and_compared() -> None:
    assert broken(Talk) == {}
    assert details(Talk)[FACES] == f"{LONGEST} turn(s)"


def test_what_differs_in_an_episode_without_an_end_is_reported() -> None:
    class TwoFaced(Talk):
        def env_response(self, messages: list[Message], state: State) -> Any:
            return [UserMessage("who steps?" if state["client"] is None else "who is asked?")]

    assert list(broken(TwoFaced)) == [FACES]


def test_the_faces_are_compared_inside_wrappers_that_change_actions() -> None:
    def make() -> gymnasium.Env[Any, Any]:
        return TimeLimit(TransformAction(Talk(), lambda message: message, Talk().action_space), 5)

    assert FACES not in broken(make)


def test_functions_are_counted_in_every_kind_of_rubric() -> None:
    assert details(Talk)[ONCE] == "6 functions"  # length, fails, one and tidy, and two of the library: num_turns, render_state
    assert broken(lambda: Talk(max_turns=2)) == {}
    assert broken(lambda: Talk(score_rollouts=False)) == {}


def test_functions_are_as_they_were_after_the_check() -> None:
    rubric = Rubric(lambda completion: 1.0)
    (func,) = rubric.funcs
    check_environment(lambda: SingleTurnEnv([{"question": "?"}], rubric=rubric))
    assert rubric.funcs == [func]


def test_an_environment_that_scores_itself_is_reported() -> None:
    class ScoresItself(Talk):
        async def rollout(self, *args: Any, **kwargs: Any) -> State:
            state = await super().rollout(*args, **kwargs)
            await self.rubric.score_rollout(state)
            return state

    assert "length was called 2 times, not 1, for an episode" in broken(lambda: ScoresItself(max_turns=3))[ONCE]


def test_an_environment_that_cleans_up_itself_is_reported() -> None:
    class CleansUpItself(Talk):
        def env_response(self, messages: list[Message], state: State) -> Any:
            for handler in self.hooks.cleanups:
                handler.call(state)
            return super().env_response(messages, state)

    assert "times, not 1, for an episode that was played" in broken(lambda: CleansUpItself(max_turns=3))[ONCE]


def test_a_game_reads_the_words_that_it_writes() -> None:
    assert details(lambda: to_chat("Taxi-v4"))[WORDS] == "100 samples"
    assert WORDS not in details(Talk)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: 3, "returned int, no gymnasium.Env"),
        (Talk(), "a function that makes the environment anew each time, got Talk"),
        ("nowhere_at_all:Talk-v0", "there is no module 'nowhere_at_all'"),
        ("gymnasium/FrozenLak-v1", "Did you mean"),
    ],
)
def test_what_cannot_be_checked_is_refused(env: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_environment(env)
