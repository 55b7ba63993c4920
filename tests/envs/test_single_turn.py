"""`SingleTurnEnv`: one question, one answer."""

from __future__ import annotations

import pytest

from vfgym import Rubric, SingleTurnEnv
from vfgym.errors import ConfigurationError

ROWS = [{"question": "?", "answer": "42"}]


@pytest.mark.parametrize(("answer", "reward"), [("42", 1.0), ("", 0.0)])
def test_an_episode_is_done_with_the_first_answer(answer: str, reward: float) -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(lambda completion, answer: float(completion[-1].content == answer)))
    observation, _ = env.reset(seed=0)
    outcome = env.step(answer)
    assert (outcome[1:4], len(outcome.observation)) == ((reward, True, False), len(observation) + 1)
    assert outcome.info["stop_condition"] == "max_turns_reached"


def test_what_ends_it_otherwise_keeps_its_flags() -> None:
    env = SingleTurnEnv(ROWS)
    env.reset(seed=0)
    assert env.truncate()[2:4] == (False, True)


def test_tasks_of_either_kind_are_enough_and_turns_are_not_asked_for() -> None:
    SingleTurnEnv(eval_dataset=ROWS)
    with pytest.raises(ConfigurationError, match="needs tasks"):
        SingleTurnEnv()
    with pytest.raises((ConfigurationError, TypeError), match="one turn"):
        SingleTurnEnv(ROWS, max_turns=2)
    with pytest.raises(NotImplementedError, match="single turn"):
        SingleTurnEnv(ROWS).env_response([], None)  # type: ignore[arg-type]
