"""Scoring episodes that were played, where scoring is switched off or a rubric brings advantages of its own."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym import Rubric, RubricGroup, SingleTurnEnv
from vfgym.aio.steps import Steps, run_async
from vfgym.episode.scoring import score_together
from vfgym.rubrics.scoring import Score
from vfgym.runs.client_player import Rollouts
from vfgym.state import State
from vfgym.testing import ScriptedClient


class Ranking(Rubric):
    provides_advantages = True

    def group_scoring_steps(self, states: list[State]) -> Steps[list[Score]]:
        scores = yield from super().group_scoring_steps(states)
        for place, state in enumerate(states):
            state["advantage"] = 10.0 + place
        return scores


def length(completion: list[Any]) -> float:
    return float(len(completion[0].content))


@pytest.mark.parametrize("is_grouped", [False, True])
@pytest.mark.parametrize(("score_rollouts", "rewards", "advantages"), [(True, [1.0, 3.0], [10.0, 11.0]), (False, [0.0, 0.0], [0.0, 0.0])])
async def test_advantages_are_the_rubrics_own_where_it_scores_and_the_machines_where_nothing_does(
    is_grouped: bool, score_rollouts: bool, rewards: list[float], advantages: list[float]
) -> None:
    """Every state of a group has an advantage, whoever computes it."""
    own: Rubric = RubricGroup([Rubric(), Ranking(length)]) if is_grouped else Ranking(length)
    env = SingleTurnEnv([{"question": "?"}], rubric=own, score_rollouts=score_rollouts)
    states = [await Rollouts().play(env, env.tasks.input(0), ScriptedClient([said]), "m", None) for said in ("a", "bbb")]
    await run_async(score_together(env, states))
    assert ([state["reward"] for state in states], [state["advantage"] for state in states]) == (rewards, advantages)
